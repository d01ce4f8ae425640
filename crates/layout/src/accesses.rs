//! The accesses of a benchmark to lines of code, set by set of each cache, and which of them miss.

use crate::job::Job;
use crate::part::Part;
use std::collections::HashMap;
use std::rc::Rc;

const LINE: u64 = 64;
/// The op cache is taken for one of whole lines: as many ops as instructions of four bytes, the usual length. The front
/// end, which judges what was found, has its entries.
const OPS_OF_LINE: u64 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub sets: u64,
    pub ways: usize,
}

/// Return the caches, each once, and which each family has: the first cache, then the op cache if there is one.
pub fn shapes(job: &Job) -> (Vec<Shape>, Vec<[Option<usize>; 2]>) {
    let mut shapes: Vec<Shape> = Vec::new();
    let mut place = |shape: Shape| {
        shapes.iter().position(|known| *known == shape).unwrap_or_else(|| {
            shapes.push(shape);
            shapes.len() - 1
        })
    };
    let of_family = |geometry: &kdyno_model::geometry::Geometry| {
        let (l1i, frontend) = (&geometry.l1i, &geometry.frontend);
        let lines = frontend.op_cache / OPS_OF_LINE;
        let first = place(Shape { sets: l1i.size / LINE / l1i.ways, ways: l1i.ways as usize });
        let ops = (lines > 0)
            .then(|| Shape { sets: lines / frontend.op_cache_ways, ways: frontend.op_cache_ways as usize })
            .map(&mut place);
        [Some(first), ops]
    };
    let families = job.families.iter().map(of_family).collect();
    (shapes, families)
}

/// Lines that a unit's blocks touch, counted from the line where the unit starts, and when.
type Touched = Rc<Vec<(u64, Vec<u32>)>>;

/// A line in a set.
pub struct Resident {
    line: u64,
    pub unit: u32,
    touched: Touched,
    place: usize,
}

pub struct CacheOf {
    pub shape: Shape,
    pub sets: Vec<Vec<Resident>>,
    pub misses: Vec<u64>,
    /// The sum of the weights of the misses of each set, in [`GRAINS`].
    sum: u64,
    weights: Vec<u64>,
}

impl CacheOf {
    /// Return the weighed misses of all sets.
    pub fn weighed(&self) -> f64 {
        self.sum as f64 / GRAINS as f64
    }

    /// Set the misses of a set that were counted before.
    pub fn restore(&mut self, set: usize, misses: u64) {
        self.sum = self.sum - self.weight(self.misses[set]) + self.weight(misses);
        self.misses[set] = misses;
    }

    fn weight(&self, misses: u64) -> u64 {
        self.weights.get(misses as usize).copied().unwrap_or(misses * GRAINS)
    }

    /// Bend the weights: misses weigh by a power below 1 of those of their set; a set with as many as the others have
    /// on average weighs what it did.
    pub fn bend(&mut self, power: f64) {
        let missing = self.misses.iter().filter(|misses| **misses > 0).count().max(1);
        let mean = self.misses.iter().sum::<u64>() as f64 / missing as f64;
        let factor = GRAINS as f64 * libm::pow(mean.max(1.0), 1.0 - power);
        self.weights = (0..MOST_BENT).map(|misses| (factor * libm::pow(f64::from(misses), power)) as u64).collect();
        self.sum = self.misses.iter().map(|misses| self.weight(*misses)).sum();
    }
}

/// Parts of a miss.
const GRAINS: u64 = 1 << 10;
/// Sets with more misses aren't bent.
const MOST_BENT: u32 = 1 << 13;

/// The accesses of one part.
pub struct Accesses<'a> {
    job: &'a Job,
    part: &'a Part<'a>,
    /// Steps of each unit; without one: under NONE.
    steps_of: HashMap<u32, Vec<u32>>,
    touched: HashMap<(u32, u64), Touched>,
    pub caches: Vec<CacheOf>,
    scratch: Vec<(u32, u64)>,
    recent: Vec<u64>,
}

/// Blocks outside of all units; they are where they were recorded.
const NONE: u32 = u32::MAX;

impl<'a> Accesses<'a> {
    pub fn new(job: &'a Job, part: &'a Part<'a>, shapes: &[Shape], placed: &[u64]) -> Accesses<'a> {
        let mut steps_of: HashMap<u32, Vec<u32>> = HashMap::new();
        for (number, step) in (0..).zip(part.steps) {
            let unit = job.traces[part.trace].blocks[step.block as usize].unit.unwrap_or(NONE);
            steps_of.entry(unit).or_default().push(number);
        }
        let of_shape = |shape: &Shape| CacheOf {
            shape: *shape,
            sets: (0..shape.sets).map(|_| Vec::new()).collect(),
            misses: vec![0; shape.sets as usize],
            sum: 0,
            weights: Vec::new(),
        };
        let caches = shapes.iter().map(of_shape).collect();
        let (touched, scratch, recent) = (HashMap::new(), Vec::new(), Vec::new());
        let mut accesses = Accesses { job, part, steps_of, touched, caches, scratch, recent };
        let mut units: Vec<u32> = accesses.steps_of.keys().copied().collect();
        units.sort_unstable();
        for unit in units {
            let at = if unit == NONE { 0 } else { placed[unit as usize] };
            accesses.put(unit, at);
        }
        for (cache, shape) in shapes.iter().enumerate() {
            for set in 0..shape.sets as usize {
                accesses.count(cache, set);
            }
        }
        accesses
    }

    fn touched(&mut self, unit: u32, at: u64) -> Touched {
        let phase = at % LINE;
        if let Some(touched) = self.touched.get(&(unit, phase)) {
            return touched.clone();
        }
        let start = if unit == NONE { 0 } else { self.job.units[unit as usize].start };
        let blocks = &self.job.traces[self.part.trace].blocks;
        let mut lines: HashMap<u64, Vec<u32>> = HashMap::new();
        let mut latest = (u64::MAX, 0);
        for number in &self.steps_of[&unit] {
            let code = blocks[self.part.steps[*number as usize].block as usize].code;
            let first = phase.wrapping_add(code.start.wrapping_sub(start)) / LINE;
            let last = phase.wrapping_add(code.end.wrapping_sub(start).wrapping_sub(1)) / LINE;
            for line in first..=last.max(first) {
                // A line that was touched by the step before is still the most recent one of its set.
                if latest != (line, number.wrapping_sub(1)) {
                    lines.entry(line).or_default().push(*number);
                }
                latest = (line, *number);
            }
        }
        let mut lines: Vec<(u64, Vec<u32>)> = lines.into_iter().collect();
        lines.sort_unstable();
        let touched = Rc::new(lines);
        self.touched.insert((unit, phase), touched.clone());
        touched
    }

    pub fn put(&mut self, unit: u32, at: u64) {
        let touched = self.touched(unit, at);
        for cache in &mut self.caches {
            for (place, (offset, _)) in touched.iter().enumerate() {
                let line = at / LINE + offset;
                let set = (line % cache.shape.sets) as usize;
                cache.sets[set].push(Resident { line, unit, touched: touched.clone(), place });
            }
        }
    }

    pub fn take(&mut self, unit: u32, at: u64) {
        let touched = self.touched(unit, at);
        for cache in &mut self.caches {
            for (offset, _) in touched.iter() {
                let line = at / LINE + offset;
                let set = &mut cache.sets[(line % cache.shape.sets) as usize];
                set.retain(|resident| resident.unit != unit || resident.line != line);
            }
        }
    }

    /// Count the misses of a set anew; return what they were.
    pub fn count(&mut self, cache: usize, set: usize) -> u64 {
        let cache = &mut self.caches[cache];
        let misses = misses(&cache.sets[set], cache.shape.ways, &mut self.scratch, &mut self.recent);
        let before = std::mem::replace(&mut cache.misses[set], misses);
        cache.sum = cache.sum - cache.weight(before) + cache.weight(misses);
        before
    }

    /// Add the cache and the set of each line of a unit at an address to `sets`.
    pub fn sets(&mut self, unit: u32, at: u64, sets: &mut Vec<(usize, usize)>) {
        let touched = self.touched(unit, at);
        for (number, cache) in self.caches.iter().enumerate() {
            for (offset, _) in touched.iter() {
                sets.push((number, ((at / LINE + offset) % cache.shape.sets) as usize));
            }
        }
    }
}

/// Return the misses in the second of two passes over the accesses.
fn misses(set: &[Resident], ways: usize, accesses: &mut Vec<(u32, u64)>, recent: &mut Vec<u64>) -> u64 {
    if set.len() <= ways {
        return 0;
    }
    accesses.clear();
    for resident in set {
        accesses.extend(resident.touched[resident.place].1.iter().map(|time| (*time, resident.line)));
    }
    accesses.sort_unstable();
    recent.clear();
    let mut misses = 0;
    for pass in 0..2 {
        for (_, line) in accesses.iter() {
            match recent.iter().position(|known| known == line) {
                Some(place) => recent[..=place].rotate_right(1),
                None => {
                    misses += pass;
                    if recent.len() == ways {
                        recent.pop();
                    }
                    recent.insert(0, *line);
                }
            }
        }
    }
    misses
}
