//! The search in two parts: many moves with the quick model, then some with the exact one.

use crate::anneal::{Annealing, Model, Schedule};
use crate::exact::Exact;
use crate::fit::costs;
use crate::job::Job;
use crate::part::{neighbours, parts};
use crate::place::{Order, addresses};
use crate::rng::Rng;
use crate::room::Room;
use crate::sets::Sets;

/// Boots whose traces are searched with; more would take longer and say nearly the same. All are predicted for.
const BOOTS: [usize; 2] = [0, 1];
/// Layouts that the costs of misses are fitted to.
const FITTED: u64 = 6;
/// The powers of the quick model, one after the other: first misses are gathered in few sets, in the end each counts.
const POWERS: [f64; 3] = [0.7, 0.85, 1.0];
/// The temperatures of the mean logarithm of cycles, from the first move to the last of the quick model.
const TEMPERATURES: [f64; 2] = [3e-5, 3e-7];
/// The temperatures of the exact model, which corrects what the quick one ignores.
const EXACT: [f64; 2] = [1e-6, 1e-7];
/// One of so many moves is tried with the exact model; it takes some twenty times as long.
const EXACT_EACH: u32 = 10;

/// Return the best order that is found, starting from the first of the job.
pub fn best_order(job: &Job) -> Order {
    let parts = parts(job, &BOOTS);
    let neighbours = neighbours(job, &parts);
    let costs = costs(job, &parts, &layouts(job));
    let start = Room::packed(job, &job.orders[0]);
    let mut room = start.clone();
    let moves = job.moves - job.moves / EXACT_EACH;
    let step = libm::pow(TEMPERATURES[1] / TEMPERATURES[0], 1.0 / POWERS.len() as f64);
    let mut hot = TEMPERATURES[0];
    for power in POWERS {
        let schedule = Schedule { hot, cold: hot * step, moves: moves / POWERS.len() as u32 };
        let quick = Sets::new(job, &parts, addresses(job, &room.order()), costs.clone(), power);
        room = Annealing::new(job, quick, room, &neighbours).run(schedule).0;
        hot *= step;
    }
    let exact = |room: &Room| Exact::new(job, &parts, addresses(job, &room.order()));
    let schedule = Schedule { hot: EXACT[0], cold: EXACT[1], moves: job.moves / EXACT_EACH };
    let (room, value) = Annealing::new(job, exact(&room), room, &neighbours).run(schedule);
    // The quick model may have led astray.
    if value <= exact(&start).value() { room.order() } else { start.order() }
}

/// Return the layouts that the costs of misses are fitted to: what was recorded, the first order, and that order
/// shuffled.
fn layouts(job: &Job) -> Vec<Vec<u64>> {
    let recorded = job.units.iter().map(|unit| unit.start).collect();
    let mut layouts = vec![recorded, addresses(job, &Order::plain(&job.orders[0]))];
    layouts.extend((0..FITTED).map(|seed| addresses(job, &Order::plain(&shuffled(&job.orders[0], seed)))));
    layouts
}

fn shuffled(order: &[u32], seed: u64) -> Vec<u32> {
    let (mut order, mut rng) = (order.to_vec(), Rng::new(seed));
    for place in (1..order.len()).rev() {
        order.swap(place, rng.below(place as u64 + 1) as usize);
    }
    order
}
