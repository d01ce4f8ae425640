//! The quick model: misses of the first cache and of the op cache, set by set, without times.
//!
//! What a set of a cache holds depends on nothing but the accesses to lines of that set. So a move changes the misses of
//! those sets alone that its lines leave and come to. What a miss costs is fitted to replays (fit.rs).

use crate::accesses::{Accesses, shapes};
use crate::anneal::Model;
use crate::job::Job;
use crate::part::{Part, parts_of, value};
use crate::rng::Rng;

/// Sets that are looked at for one with misses.
const LOOKS: usize = 20;

pub struct Sets<'a> {
    job: &'a Job,
    parts: &'a [Part<'a>],
    families: Vec<[Option<usize>; 2]>,
    /// Cycles of a miss of each, by family.
    costs: Vec<[f64; 2]>,
    accesses: Vec<Accesses<'a>>,
    parts_of: Vec<Vec<usize>>,
    placed: Vec<u64>,
    rest: Vec<Vec<f64>>,
    values: Vec<f64>,
    sum: f64,
    before: Before,
}

#[derive(Default)]
struct Before {
    former_places: Vec<(u32, u64)>,
    /// Part, cache, set, misses.
    misses: Vec<(usize, usize, usize, u64)>,
    values: Vec<(usize, f64)>,
    sum: f64,
}

/// Return the misses of the first cache and of the op cache, by part and family.
pub fn counted(job: &Job, parts: &[Part], placed: &[u64]) -> Vec<Vec<[f64; 2]>> {
    let (shapes, families) = shapes(job);
    let of_part = |part: &Part| {
        let accesses = Accesses::new(job, part, &shapes, placed);
        let misses = |cache: Option<usize>| cache.map_or(0.0, |cache| accesses.caches[cache].weighed());
        families.iter().map(|caches| caches.map(misses)).collect()
    };
    parts.iter().map(of_part).collect()
}

impl<'a> Sets<'a> {
    /// Return the sets; `power` applies to the misses of a set; below 1 it pays to gather misses in few sets. Where
    /// more lines than a cache has come in turn, all of them miss, and taking one out of a set saves nothing until as
    /// few are left as fit: a search would never get there.
    pub fn new(job: &'a Job, parts: &'a [Part<'a>], placed: Vec<u64>, costs: Vec<[f64; 2]>, power: f64) -> Sets<'a> {
        let (shapes, families) = shapes(job);
        let recorded: Vec<u64> = job.units.iter().map(|unit| unit.start).collect();
        let fetching = |misses: &[f64; 2], costs: &[f64; 2]| misses[0] * costs[0] + misses[1] * costs[1];
        let rest = |(part, misses): (&Part, Vec<[f64; 2]>)| {
            let terms = part.before.iter().zip(misses.iter().zip(&costs));
            terms.map(|(before, (misses, costs))| before - fetching(misses, costs)).collect()
        };
        let rest = parts.iter().zip(counted(job, parts, &recorded)).map(rest).collect();
        let mut accesses: Vec<_> = parts.iter().map(|part| Accesses::new(job, part, &shapes, &placed)).collect();
        if power < 1.0 {
            accesses.iter_mut().flat_map(|accesses| &mut accesses.caches).for_each(|cache| cache.bend(power));
        }
        let (parts_of, values) = (parts_of(job, parts), vec![0.0; parts.len()]);
        let mut sets = Sets {
            job,
            parts,
            families,
            costs,
            accesses,
            parts_of,
            placed,
            rest,
            values,
            sum: 0.0,
            before: Before::default(),
        };
        sets.values = (0..parts.len()).map(|part| sets.value_of(part)).collect();
        sets.sum = sets.values.iter().sum();
        sets
    }

    /// Return the value over all families.
    fn value_of(&self, part: usize) -> f64 {
        let misses = |cache: Option<usize>| cache.map_or(0.0, |cache| self.accesses[part].caches[cache].weighed());
        let of_family = |family: usize| {
            let [first, ops] = self.families[family].map(misses);
            let cycles = self.rest[part][family] + first * self.costs[family][0] + ops * self.costs[family][1];
            value(self.job, cycles, self.parts[part].before[family])
        };
        (0..self.families.len()).map(of_family).sum()
    }

    fn put_all(&mut self, changes: &[(u32, u64)]) {
        for (unit, at) in changes {
            let old = std::mem::replace(&mut self.placed[*unit as usize], *at);
            for part in &self.parts_of[*unit as usize] {
                self.accesses[*part].take(*unit, old);
                self.accesses[*part].put(*unit, *at);
            }
        }
    }
}

impl Model for Sets<'_> {
    fn value(&self) -> f64 {
        self.sum / (self.parts.len() * self.families.len()).max(1) as f64
    }

    fn moved(&mut self, changes: &[(u32, u64)]) {
        let former_places: Vec<(u32, u64)> =
            changes.iter().map(|(unit, _)| (*unit, self.placed[*unit as usize])).collect();
        let mut before = Before { sum: self.sum, ..Before::default() };
        self.put_all(changes);
        let mut parts: Vec<usize> =
            changes.iter().flat_map(|(unit, _)| self.parts_of[*unit as usize].clone()).collect();
        parts.sort_unstable();
        parts.dedup();
        for part in parts {
            let mut sets = Vec::new();
            for (unit, at) in changes.iter().chain(&former_places) {
                if self.parts_of[*unit as usize].contains(&part) {
                    self.accesses[part].sets(*unit, *at, &mut sets);
                }
            }
            sets.sort_unstable();
            sets.dedup();
            for (cache, set) in sets {
                let misses = self.accesses[part].count(cache, set);
                before.misses.push((part, cache, set, misses));
            }
            let value = self.value_of(part);
            before.values.push((part, std::mem::replace(&mut self.values[part], value)));
        }
        self.sum = self.values.iter().sum();
        before.former_places = former_places;
        self.before = before;
    }

    /// Return one of the lines in a set with misses.
    fn costly(&self, rng: &mut Rng) -> Option<u32> {
        (0..LOOKS).find_map(|_| {
            let part = &self.accesses[rng.below(self.accesses.len() as u64) as usize];
            let cache = &part.caches[rng.below(part.caches.len() as u64) as usize];
            let set = rng.below(cache.shape.sets) as usize;
            let lines = &cache.sets[set];
            (cache.misses[set] > 0).then(|| lines[rng.below(lines.len() as u64) as usize].unit)
        })
    }

    fn undo(&mut self) {
        let before = std::mem::take(&mut self.before);
        self.put_all(&before.former_places);
        for (part, cache, set, misses) in before.misses {
            self.accesses[part].caches[cache].restore(set, misses);
        }
        before.values.into_iter().for_each(|(part, value)| self.values[part] = value);
        self.sum = before.sum;
    }
}
