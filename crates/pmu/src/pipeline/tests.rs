//! Small loops, and what they wait for.

use super::*;
use crate::geometry::SMALL;
use crate::units::ALU;

const PLAIN: Op = Op {
    address: [NOTHING; 2],
    sources: [NOTHING; 3],
    targets: [NOWHERE; 3],
    latency: 1,
    loaded: Loaded::Used,
    is_fused: false,
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

fn about(count: u64, expected: u64) -> bool {
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
    assert!(about(counts[Event::stall_dependencies as usize], 2000));
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
    assert!(about(chased, 300_000) && apart < chased / 10, "{chased} {apart}");
}

#[test]
fn a_misprediction_costs_the_refill_after_what_it_waited_for() {
    let counts = stalls(&[PLAIN; 4], 1000, Pipeline::mispredicted);
    let stalled = counts[Event::stall_branches as usize];
    assert!((14_000..=16_000).contains(&stalled), "{stalled}");
}
