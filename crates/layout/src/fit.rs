//! What a miss costs: fitted to replays of several layouts, so that the quick model says nearly what the exact one does.

use crate::job::Job;
use crate::part::Part;
use crate::place::fetched;
use crate::predict::{in_parallel, weighed};
use crate::replay::replay;
use crate::sets::counted;

/// Return the cycles of a miss of the first cache and of the op cache, by family: least squares over the differences
/// that layouts make to each part. `layouts`: addresses of units; the first is what the others are compared with.
pub fn costs(job: &Job, parts: &[Part], layouts: &[Vec<u64>]) -> Vec<[f64; 2]> {
    let misses: Vec<_> = layouts.iter().map(|placed| counted(job, parts, placed)).collect();
    in_parallel(job.families.len(), |family| {
        let fetching = |placed: &Vec<u64>| -> Vec<f64> {
            let of_part = |part: &Part| {
                let trace = &job.traces[part.trace];
                let times: Vec<u32> = trace.blocks.iter().map(|block| block.time).collect();
                let blocks = fetched(trace, &job.units, placed);
                weighed(&replay(part.steps, &blocks, &times, &job.families[family]), job.weights[family])
            };
            parts.iter().map(of_part).collect()
        };
        let cycles: Vec<_> = layouts.iter().map(fetching).collect();
        let mut sums = [0.0; 5];
        for (layout, part) in (1..layouts.len()).flat_map(|layout| (0..parts.len()).map(move |part| (layout, part))) {
            let change = |which: usize| misses[layout][part][family][which] - misses[0][part][family][which];
            // Of relative changes: that is what counts in the end.
            let scale = 1.0 / parts[part].before[family];
            let (first, ops) = (change(0) * scale, change(1) * scale);
            let cost = (cycles[layout][part] - cycles[0][part]) * scale;
            let terms = [first * first, first * ops, ops * ops, first * cost, ops * cost];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
        solved(sums)
    })
}

/// Return the least squares of two unknowns, neither below 0.
fn solved([aa, ab, bb, ac, bc]: [f64; 5]) -> [f64; 2] {
    let determinant = aa * bb - ab * ab;
    if determinant > 1e-9 * aa * bb {
        let both = [(bb * ac - ab * bc) / determinant, (aa * bc - ab * ac) / determinant];
        if both[0] >= 0.0 && both[1] >= 0.0 {
            return both;
        }
    }
    let alone = |square: f64, product: f64| {
        if square > 0.0 { (product / square).max(0.0) } else { 0.0 }
    };
    let (first, ops) = (alone(aa, ac), alone(bb, bc));
    // The one that explains more.
    if first * ac >= ops * bc { [first, 0.0] } else { [0.0, ops] }
}
