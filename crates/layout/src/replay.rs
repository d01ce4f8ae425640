//! A recorded sequence of blocks on the modelled fetch path, with the blocks where a layout puts them.
//!
//! What a block takes once it is there (dispatch, data, mispredictions) is the mean of its recorded times; all else is
//! the front end of the PMU plugin. All code is taken to be in L2 and its translations in the first TLB, as it is when a
//! benchmark is warm.

use kdyno_model::CYCLE;
use kdyno_model::events::{Counts, EVENTS, Event};
use kdyno_model::frontend::{Beyond, Fetched, Frontend};
use kdyno_model::geometry::Geometry;

/// How a block came after another; the numbers are those of the PMU record (docs/profiles.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Way {
    Through,
    Taken,
    Unexpected,
    Entered,
}

impl Way {
    pub fn of(number: u64) -> Way {
        [Way::Through, Way::Taken, Way::Unexpected, Way::Entered][(number & 3) as usize]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The index among the trace's blocks.
    pub block: u32,
    pub way: Way,
    /// It is elsewhere than behind the one before.
    pub is_taken: bool,
}

/// The cost of one replay.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Cycles in which nothing was there to be dispatched.
    pub starved: f64,
    pub l1i_misses: u64,
    pub op_cache_misses: u64,
    pub btb_misses: u64,
}

/// Everything is in L2.
struct Warm;

impl Beyond for Warm {
    #[inline(always)]
    fn translate_fetch(&mut self, _: u64, _: &mut Counts) -> u8 {
        0
    }

    #[inline(always)]
    fn fetch_miss(&mut self, _: u64, counts: &mut Counts) -> u8 {
        counts[Event::l1i_misses as usize] += 1;
        1
    }

    #[inline(always)]
    fn fetch_ahead(&mut self, _: u64) -> u8 {
        1
    }
}

/// Parts of a cycle in which times are recorded (TIME_PARTS of crates/pmu).
const PART: u64 = CYCLE / 16;

/// Replay the steps twice, and return the second pass: the first one warms the caches, as iterations before do.
///
/// `blocks`: where each is now; `times`: of each, in parts of a cycle.
pub fn replay(steps: &[Step], blocks: &[Fetched], times: &[u32], geometry: &Geometry) -> Cost {
    let mut frontend = Frontend::new(geometry);
    let mut counts = [0; EVENTS];
    pass(steps, blocks, times, &mut frontend, &mut counts);
    frontend.reset();
    counts = [0; EVENTS];
    let starved = pass(steps, blocks, times, &mut frontend, &mut counts);
    Cost {
        starved: starved as f64 / CYCLE as f64,
        l1i_misses: counts[Event::l1i_misses as usize],
        op_cache_misses: counts[Event::op_cache_misses as usize],
        btb_misses: counts[Event::btb_misses as usize],
    }
}

/// Return for how long nothing was there, in parts of [`CYCLE`].
fn pass(steps: &[Step], blocks: &[Fetched], times: &[u32], frontend: &mut Frontend, counts: &mut Counts) -> u64 {
    let (mut dispatched, mut starved) = (0, 0);
    let mut before = None;
    for step in steps {
        let block = &blocks[step.block as usize];
        if let Some(before) = before.filter(|_| step.is_taken) {
            frontend.taken(before, counts);
        }
        if matches!(step.way, Way::Unexpected | Way::Entered) {
            frontend.restart(dispatched);
        }
        let ready = frontend.fetch(block, dispatched, &mut Warm, counts);
        if ready > dispatched {
            starved += ready - dispatched;
            dispatched = ready;
        }
        dispatched += u64::from(times[step.block as usize]) * PART;
        before = Some(block);
    }
    starved
}
