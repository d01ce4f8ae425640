//! Small loops, and what they wait for.

use super::*;
use crate::geometry::SMALL;
use crate::units::{ALU, SHIFT};

const PLAIN: Op = Op {
    address: [NOTHING; 2],
    sources: [NOTHING; 3],
    targets: [NOWHERE; 3],
    latency: 1,
    load_use: LoadUse::Used,
    late: NOWHERE,
    slots: 1,
    needs: ALU,
    kind: Kind::Plain,
};

/// Return what a pipeline 4 wide counted after `times` blocks of `ops`.
fn stalls(ops: &[Op], times: usize, mut before_block: impl FnMut(&mut Pipeline)) -> Counts {
    let mut pipeline = Pipeline::new(&Geometry::parse(SMALL).unwrap());
    let mut counts = [0; EVENTS];
    for _ in 0..times {
        before_block(&mut pipeline);
        pipeline.block(ops, &mut counts);
    }
    counts
}

fn is_about(count: u64, expected: u64) -> bool {
    count.abs_diff(expected) <= expected / 20 + 5
}

#[test]
fn instructions_that_need_nothing_do_not_stall() {
    let counts = stalls(&[PLAIN; 8], 1000, |_| {});
    assert_eq!(counts[Event::slots as usize], 8000);
    assert!(counts.iter().sum::<u64>() < 8005);
}

#[test]
fn a_chain_waits_for_its_latency_beyond_the_width() {
    let chained = Op { sources: [0, NOTHING, NOTHING], targets: [0, NOWHERE, NOWHERE], latency: 3, ..PLAIN };
    let counts = stalls(&[chained, PLAIN, PLAIN, PLAIN], 1000, |_| {});
    assert!(is_about(counts[Event::stall_dependencies as usize], 2000));
}

#[test]
fn misses_that_depend_on_each_other_add_up_and_others_overlap() {
    let far = Reach { level: 3, ..Reach::default() };
    let chase = Op { address: [0, NOTHING], targets: [0, NOWHERE, NOWHERE], latency: 0, needs: 0, ..PLAIN };
    let mut address = 0;
    let mut miss = |pipeline: &mut Pipeline| {
        address += 4096;
        pipeline.touch(0, address, 8, false, far);
    };
    let chased = stalls(&[chase], 1000, &mut miss)[Event::stall_memory_chained as usize];
    let apart = stalls(&[Op { address: [NOTHING; 2], ..chase }], 1000, &mut miss)[Event::stall_memory as usize];
    assert!(is_about(chased, 300_000) && apart < chased / 10, "{chased} {apart}");
}

#[test]
fn a_misprediction_costs_the_refill_after_what_it_waited_for() {
    let counts = stalls(&[PLAIN; 4], 1000, Pipeline::record_misprediction);
    let stalled = counts[Event::stall_branches as usize];
    assert!((14_000..=16_000).contains(&stalled), "{stalled}");
}

const LOAD: Op = Op { targets: [0, NOWHERE, NOWHERE], latency: 0, needs: 0, load_use: LoadUse::Moved, ..PLAIN };
const STORE: Op = Op { sources: [0, NOTHING, NOTHING], latency: 0, needs: 0, ..PLAIN };
const INCREMENT: Op = Op { sources: [0, NOTHING, NOTHING], targets: [0, NOWHERE, NOWHERE], ..PLAIN };

/// Return the cycles that a turn takes of storing a register, loading it again and adding 1.
fn turn(load_use: LoadUse, stored: u64, read: u64) -> u64 {
    let load = Op { load_use, ..LOAD };
    let counts = stalls(&[STORE, load, INCREMENT], 1000, |pipeline| {
        pipeline.touch(0, 4096, stored, true, Reach::default());
        pipeline.touch(1, 4096, read, false, Reach::default());
    });
    (counts[Event::stall_dependencies as usize] + counts[Event::slots as usize] / 4).div_ceil(1000)
}

#[test]
fn a_load_of_what_was_stored_is_renamed_or_forwarded_or_waits_for_the_cache() {
    let geometry = Geometry::parse(SMALL).unwrap().latency;
    assert_eq!(turn(LoadUse::Moved, 8, 8), geometry.renamed + 1);
    assert_eq!(turn(LoadUse::Moved, 8, 4), geometry.renamed + 1);
    assert!((geometry.forward + 1..=geometry.forward + 2).contains(&turn(LoadUse::Used, 8, 8)));
    assert!(turn(LoadUse::Moved, 4, 8) > 2 * geometry.forward + geometry.l1);
}

/// Return the cycles of a store, of many to addresses so far apart.
fn cycles_of_store(apart: u64, size: u64) -> f64 {
    let mut address = 4096;
    let counts = stalls(&[Op { sources: [NOTHING; 3], ..STORE }], 4096, |pipeline| {
        pipeline.touch(0, address, size, true, Reach::default());
        address = 4096 + (address + apart) % 4096;
    });
    counts[Event::stall_dependencies as usize] as f64 / 4096.0 + 0.25
}

#[test]
fn stores_leave_their_queue_one_a_cycle_or_two_that_are_near_or_half_a_one_that_is_split() {
    for (apart, size, expected) in [(64, 8, 1.0), (8, 8, 0.5), (64, 100, 2.0)] {
        let cycles = cycles_of_store(apart, size);
        assert!((cycles - expected).abs() < 0.1, "{apart} {size}: {cycles}");
    }
}

#[test]
fn a_rep_instruction_takes_the_place_of_others_for_as_long_as_its_bytes_say() {
    let reps = Geometry::parse(SMALL).unwrap().rep;
    let (moves, stores) = (reps.moves, reps.stores);
    for (strings, bytes, expected) in [
        (Strings::Moved, 8, moves.short),
        (Strings::Moved, moves.short_bytes, moves.short),
        (Strings::Moved, 4096, moves.long + 4096 / moves.bytes),
        (Strings::MovedByWords, 2 * moves.short_bytes, reps.word_moves.short),
        (Strings::Stored, stores.short_bytes, stores.short),
        (Strings::Stored, 4096, stores.long + 4096 / stores.bytes),
        (Strings::StoredByWords, 8, reps.word_stores.short),
    ] {
        let counts = stalls(&[PLAIN], 1000, |pipeline| {
            pipeline.rep_bytes(bytes);
            pipeline.end_rep(strings);
        });
        let cycles = counts[Event::stall_rep as usize] / 1000;
        assert!(cycles.abs_diff(expected) <= 1, "{strings:?} {bytes}: {cycles}");
    }
}

#[test]
fn what_two_units_can_do_starts_twice_a_cycle_though_four_are_dispatched() {
    let shift = Op { needs: ALU | SHIFT, ..PLAIN };
    let counts = stalls(&[shift; 4], 1000, |_| {});
    assert!(is_about(counts[Event::stall_dependencies as usize], 1000));
}
