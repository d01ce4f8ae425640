//! Sequences of blocks whose misses, and when they are there, can be told beforehand. The front end of [`SMALL`]: 16
//! lines, 8 of them as ops, 8 branches, two misses at a time, two decoders; 10 cycles more from L2 than from L1.

use super::*;
use crate::events::EVENTS;
use crate::geometry::SMALL;
use crate::hardware::Hardware;

const CODE: u64 = 0xffff_ffff_8100_0000;

struct Fetched {
    frontend: Frontend,
    hardware: Hardware,
    counts: Counts,
}

impl Fetched {
    fn new() -> Fetched {
        let geometry = Geometry::parse(SMALL).unwrap();
        Fetched { frontend: Frontend::new(&geometry), hardware: Hardware::new(&geometry), counts: [0; EVENTS] }
    }

    /// Fetch a block of one line, while the one before is dispatched until a time; in cycles.
    fn line(&mut self, number: u64, dispatched: u64) -> u64 {
        self.line_of(number, dispatched, 0)
    }

    /// The same of a line with so many ops.
    fn line_of(&mut self, number: u64, dispatched: u64, ops: u32) -> u64 {
        let start = CODE + 64 * number;
        let block =
            crate::frontend::Fetched { start, last: start, end: start + 64, ops, is_branch: false, is_call: false };
        let time = self.frontend.fetch(&block, dispatched * CYCLE, &mut self.hardware, &mut self.counts);
        time.div_ceil(CYCLE)
    }

    /// Take a branch in a block of its own.
    fn branch(&mut self, number: u64) {
        let start = CODE + 64 * number;
        let block =
            crate::frontend::Fetched { start, last: start, end: start, ops: 0, is_branch: true, is_call: false };
        self.frontend.taken(&block, &mut self.counts);
    }

    fn count(&self, event: Event) -> u64 {
        self.counts[event as usize]
    }
}

#[test]
fn a_line_that_misses_brings_the_next_one_along() {
    let mut fetched = Fetched::new();
    fetched.line(0, 0);
    fetched.line(1, 1000);
    assert_eq!(fetched.count(Event::l1i_misses), 1);
    fetched.line(3, 2000);
    assert_eq!(fetched.count(Event::l1i_misses), 2);
    // But not beyond its page.
    fetched.line(63, 3000);
    fetched.line(64, 4000);
    assert_eq!(fetched.count(Event::l1i_misses), 4);
}

/// The last lines of four pages, which bring no others: in one set, of which L1 holds two, and L2 all four.
const FAR_APART: [u64; 4] = [63, 127, 191, 255];

#[test]
fn what_is_queued_is_there_in_time_and_after_a_misprediction_nothing_is() {
    let mut fetched = Fetched::new();
    FAR_APART.iter().for_each(|line| _ = fetched.line(*line, 0));
    // The back end takes 20 cycles for each: every miss is over before.
    for turn in 0..40 {
        let dispatched = 10_000 + 20 * turn;
        let time = fetched.line(FAR_APART[turn as usize % 4], dispatched);
        assert!(turn == 0 || time <= dispatched, "{turn}: {time} {dispatched}");
    }
    assert_eq!((fetched.count(Event::l1i_misses), fetched.count(Event::l2_misses)), (44, 4));
    // Nothing was queued: 10 cycles for the line, 4 to decode it.
    fetched.frontend.restart(20_000 * CYCLE);
    assert_eq!(fetched.line(FAR_APART[0], 20_000), 20_014);
}

#[test]
fn misses_wait_for_each_other_where_more_are_on_their_way_than_can_be() {
    let mut fetched = Fetched::new();
    FAR_APART.iter().for_each(|line| _ = fetched.line(*line, 0));
    fetched.frontend.restart(10_000 * CYCLE);
    // The second comes a cycle later, but the decoders need 4 for the bytes of the first; the third waits for the first.
    let times = FAR_APART.map(|line| fetched.line(line, 10_000));
    assert_eq!(times, [10_014, 10_018, 10_024, 10_028]);
}

#[test]
fn branches_are_known_as_long_as_the_buffer_has_them() {
    let mut fetched = Fetched::new();
    for _ in 0..10 {
        (0..2).for_each(|number| fetched.branch(number));
    }
    assert_eq!(fetched.count(Event::btb_misses), 2);
    for _ in 0..10 {
        (100..200).for_each(|number| fetched.branch(number));
    }
    assert_eq!(fetched.count(Event::btb_misses), 2 + 1000);
}

#[test]
fn a_taken_branch_that_is_not_known_is_found_when_it_is_decoded() {
    let mut fetched = Fetched::new();
    (0..2).for_each(|line| _ = fetched.line(line, 0));
    for (begin, expected) in [(1000, 8), (2000, 1)] {
        fetched.frontend.restart(begin * CYCLE);
        fetched.line(0, begin);
        fetched.branch(7);
        // The predictor alone takes a cycle for each line.
        assert_eq!(fetched.line(1, begin) - begin, expected);
    }
}

#[test]
fn the_op_cache_saves_decoding() {
    let mut fetched = Fetched::new();
    // A line of 8 ops takes both entries of its set.
    for turn in 0..10 {
        (0..8).for_each(|line| _ = fetched.line_of(line, 1000 * turn, 8));
    }
    assert_eq!(fetched.count(Event::op_cache_misses), 16);
    fetched.frontend.restart(20_000 * CYCLE);
    assert_eq!(fetched.line_of(0, 20_000, 8), 20_000);
    // Two lines for each set: each pushes out what is needed next. All are in the first cache.
    let lines = || (0..8).chain(16..24);
    lines().for_each(|line| _ = fetched.line_of(line, 30_000, 8));
    let before = fetched.count(Event::op_cache_misses);
    lines().for_each(|line| _ = fetched.line_of(line, 40_000, 8));
    assert_eq!(fetched.count(Event::op_cache_misses) - before, 32);
    fetched.frontend.restart(50_000 * CYCLE);
    assert_eq!(fetched.line_of(0, 50_000, 8), 50_004);
}

#[test]
fn what_follows_a_call_comes_later_than_what_follows_another_branch() {
    let time_behind = |is_call| {
        let mut fetched = Fetched::new();
        fetched.line(0, 0);
        let before =
            crate::frontend::Fetched { start: CODE, last: CODE, end: CODE + 64, ops: 0, is_branch: false, is_call };
        fetched.frontend.taken(&before, &mut fetched.counts);
        fetched.frontend.ahead
    };
    let call = Geometry::parse(SMALL).unwrap().latency.call;
    assert_eq!(time_behind(true) - time_behind(false), (call - 1) * CYCLE);
}
