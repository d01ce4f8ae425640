//! What a search looks at: a window of each benchmark's trace, and its cycles apart from fetching.

use crate::job::Job;
use crate::replay::Step;
use crate::window::window;

/// How much a loss beyond the guard weighs against a gain elsewhere.
const PENALTY: f64 = 20.0;
/// The guard is kept with so much to spare: predictions aren't exact.
const MARGIN: f64 = 0.2;

/// A benchmark of one boot.
pub struct Part<'a> {
    pub trace: usize,
    pub steps: &'a [Step],
    /// Recorded cycles of these steps, by family.
    pub before: Vec<f64>,
}

/// Return the parts of the traces of these boots.
pub fn parts<'a>(job: &'a Job, boots: &[usize]) -> Vec<Part<'a>> {
    let traces = job.traces.iter().enumerate();
    let chosen = traces.filter(|(_, trace)| boots.contains(&trace.boot) && !trace.steps.is_empty());
    let of_trace = |(number, trace): (usize, &'a crate::job::Trace)| {
        let steps = window(&trace.steps);
        let share = steps.len() as f64 / trace.steps.len() as f64;
        let before = trace.cycles.iter().map(|cycles| (cycles * share).max(1.0)).collect();
        Part { trace: number, steps, before }
    };
    chosen.map(of_trace).collect()
}

/// Return the logarithm of cycles compared with the previous ones, and a penalty for a loss that the guard forbids.
pub fn value(job: &Job, cycles: f64, before: f64) -> f64 {
    let change = libm::log(cycles.max(1.0) / before);
    match job.guard {
        Some(guard) => change + PENALTY * (change - MARGIN * guard).max(0.0),
        None => change,
    }
}

/// Return the units that are executed one after the other, both ways, sorted.
pub fn neighbours(job: &Job, parts: &[Part]) -> Vec<(u32, u32)> {
    let mut neighbours = Vec::new();
    for part in parts {
        let blocks = &job.traces[part.trace].blocks;
        let units: Vec<u32> = part.steps.iter().filter_map(|step| blocks[step.block as usize].unit).collect();
        let pairs = units.windows(2).filter(|pair| pair[0] != pair[1]);
        neighbours.extend(pairs.flat_map(|pair| [(pair[0], pair[1]), (pair[1], pair[0])]));
    }
    neighbours.sort_unstable();
    neighbours.dedup();
    neighbours
}

/// Return which parts execute each unit.
pub fn parts_of(job: &Job, parts: &[Part]) -> Vec<Vec<usize>> {
    let mut parts_of: Vec<Vec<usize>> = vec![Vec::new(); job.units.len()];
    for (number, part) in parts.iter().enumerate() {
        let blocks = &job.traces[part.trace].blocks;
        for unit in part.steps.iter().filter_map(|step| blocks[step.block as usize].unit) {
            let unit_parts = &mut parts_of[unit as usize];
            if unit_parts.last() != Some(&number) {
                unit_parts.push(number);
            }
        }
    }
    parts_of
}
