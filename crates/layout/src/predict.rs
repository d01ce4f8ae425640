//! Modelled cycles of each benchmark under a layout: those that were recorded, with what fetching cost replaced.

use crate::job::{Job, Trace};
use crate::place::fetched;
use crate::replay::{Cost, Step, replay};
use serde::Serialize;

/// The prediction of one trace on one family.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Predicted {
    pub cycles: f64,
    pub starved: f64,
    pub l1i_misses: u64,
    pub op_cache_misses: u64,
    pub btb_misses: u64,
}

/// Return the predictions of whole traces, by family and trace.
pub fn whole(job: &Job, placed: &[u64]) -> Vec<Vec<Predicted>> {
    let recorded: Vec<u64> = job.units.iter().map(|unit| unit.start).collect();
    in_parallel(job.families.len(), |family| {
        let of_trace = |trace: &Trace| {
            let before = cost(job, family, trace, &trace.steps, &recorded);
            let after = cost(job, family, trace, &trace.steps, placed);
            Predicted {
                cycles: trace.cycles[family] + weighed(&after, job.weights[family])
                    - weighed(&before, job.weights[family]),
                starved: after.starved,
                l1i_misses: after.l1i_misses,
                op_cache_misses: after.op_cache_misses,
                btb_misses: after.btb_misses,
            }
        };
        job.traces.iter().map(of_trace).collect()
    })
}

/// Return the cost of steps of a trace.
pub fn cost(job: &Job, family: usize, trace: &Trace, steps: &[Step], placed: &[u64]) -> Cost {
    let times: Vec<u32> = trace.blocks.iter().map(|block| block.time).collect();
    replay(steps, &fetched(trace, &job.units, placed), &times, &job.families[family])
}

/// Return a cost in modelled cycles.
pub fn weighed(cost: &Cost, [starved, miss]: [f64; 2]) -> f64 {
    cost.starved * starved + cost.l1i_misses as f64 * miss
}

/// Do `work` in parallel, with one thread for each number; the results don't depend on how many run at once.
pub fn in_parallel<T: Send>(number: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..number).map(|family| scope.spawn(move || work(family))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that panicked has ended the program")).collect()
    })
}
