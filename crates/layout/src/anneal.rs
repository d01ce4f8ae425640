//! The search: simulated annealing (Kirkpatrick, Gelatt, Vecchi: Optimization by simulated annealing, Science 1983) over
//! places of hot functions.
//!
//! A move takes one function elsewhere, or exchanges two. Nothing else shifts, since cold functions fill the gaps.

use crate::job::Job;
use crate::rng::Rng;
use crate::room::{GRAIN, Room};

/// Places that are looked at for one move, at most.
const TRIES: usize = 30;

/// What a layout costs, kept up to date move by move.
pub trait Model {
    /// Return the mean logarithm of cycles against the recorded layout, with penalties.
    fn value(&self) -> f64;
    /// Record that units are at other addresses now.
    fn moved(&mut self, changes: &[(u32, u64)]);
    /// Undo the latest changes: units are where they were.
    fn undo(&mut self);
    /// Return a unit whose place costs something, if the model has one.
    fn costly(&self, _: &mut Rng) -> Option<u32> {
        None
    }
}

/// From one temperature to another, in so many moves.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    pub hot: f64,
    pub cold: f64,
    pub moves: u32,
}

pub struct Annealing<'a, M> {
    pub model: M,
    job: &'a Job,
    room: Room,
    /// Units that can be moved, and are executed.
    movable: Vec<u32>,
    /// Units that are executed one after the other, both ways, sorted.
    neighbours: &'a [(u32, u32)],
    rng: Rng,
}

impl<'a, M: Model> Annealing<'a, M> {
    pub fn new(job: &'a Job, model: M, room: Room, neighbours: &'a [(u32, u32)]) -> Annealing<'a, M> {
        let mut movable: Vec<u32> = neighbours.iter().map(|(unit, _)| *unit).collect();
        movable.dedup();
        movable.retain(|unit| room.start[*unit as usize].is_some());
        Annealing { model, job, room, movable, neighbours, rng: Rng::new(job.seed) }
    }

    /// Return the best layout that was met, and its value.
    pub fn run(mut self, schedule: Schedule) -> (Room, f64) {
        let mut value = self.model.value();
        let mut best = (self.room.clone(), value);
        if self.movable.is_empty() {
            return best;
        }
        let falling = libm::pow(schedule.cold / schedule.hot, 1.0 / f64::from(schedule.moves.max(1)));
        let mut temperature = schedule.hot;
        for _ in 0..schedule.moves {
            temperature *= falling;
            let costly = if self.rng.below(2) == 0 { self.model.costly(&mut self.rng) } else { None };
            let costly = costly.filter(|unit| self.room.start.get(*unit as usize).is_some_and(Option::is_some));
            let unit = costly.unwrap_or_else(|| self.movable[self.rng.below(self.movable.len() as u64) as usize]);
            let Some(changes) = self.proposed(unit) else {
                continue;
            };
            let moved: Vec<(u32, u64)> = changes.iter().map(|(unit, at)| (*unit, self.job.base + at)).collect();
            self.model.moved(&moved);
            let after = self.model.value();
            if after <= value || self.rng.fraction() < libm::exp((value - after) / temperature) {
                value = after;
                changes.iter().for_each(|(unit, _)| self.room.take(*unit));
                changes.iter().for_each(|(unit, at)| self.room.put(*unit, *at));
                if value < best.1 {
                    best = (self.room.clone(), value);
                }
            } else {
                self.model.undo();
            }
        }
        best
    }

    /// Propose units and their new places.
    fn proposed(&mut self, unit: u32) -> Option<Vec<(u32, u64)>> {
        let here = self.room.start[unit as usize]?;
        if self.rng.below(4) == 0 {
            let other = self.movable[self.rng.below(self.movable.len() as u64) as usize];
            return self.exchanged(unit, here, other);
        }
        self.room.take(unit);
        let place = (0..TRIES).find_map(|_| {
            let at = self.place_for(unit, here);
            (at != here && self.room.is_free(unit, at)).then_some(at)
        });
        self.room.put(unit, here);
        place.map(|at| vec![(unit, at)])
    }

    fn exchanged(&mut self, unit: u32, here: u64, other: u32) -> Option<Vec<(u32, u64)>> {
        let place_of_other = self.room.start[other as usize].filter(|_| other != unit)?;
        self.room.take(unit);
        self.room.take(other);
        let mut fits = self.room.is_free(unit, place_of_other);
        if fits {
            self.room.put(unit, place_of_other);
            fits = self.room.is_free(other, here);
            self.room.take(unit);
        }
        self.room.put(unit, here);
        self.room.put(other, place_of_other);
        fits.then(|| vec![(unit, place_of_other), (other, here)])
    }

    /// Return a place for a unit: anywhere, a little further, or beside a unit that runs before or after it.
    fn place_for(&mut self, unit: u32, here: u64) -> u64 {
        match self.rng.below(4) {
            0 => {
                let distance = (self.rng.below(64) + 1) * GRAIN;
                if self.rng.below(2) == 0 { here.saturating_sub(distance) } else { here + distance }
            }
            1 => {
                let from = self.neighbours.partition_point(|(one, _)| *one < unit);
                let to = self.neighbours.partition_point(|(one, _)| *one <= unit);
                let (_, other) = self.neighbours[from + self.rng.below((to - from) as u64) as usize];
                let start = self.room.start[other as usize].unwrap_or(here);
                if self.rng.below(2) == 0 {
                    start.saturating_sub(self.room.size(unit))
                } else {
                    start + self.room.size(other)
                }
            }
            _ => self.rng.below(self.room.end / GRAIN) * GRAIN,
        }
    }
}
