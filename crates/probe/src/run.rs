//! Runs one program: timed on a processor, or marked for the emulated PMU.

use crate::processor;
use crate::program::Body;
use std::hint::black_box;

pub struct Timing {
    /// The cycles of the processor.
    pub cycles: f64,
    /// Ticks of the time-stamp counter per cycle in that run.
    pub beat: f64,
}

/// Time a body `times` times, after some runs that warm everything up, and take the one that a tenth of all undercut:
/// noise nearly always lengthens a run, but where it lengthens the beats instead, the run seems too short.
pub fn time_runs(body: &mut Body, times: u32) -> Timing {
    for _ in 0..WARM_UPS {
        black_box(body());
    }
    let mut previous_beat = processor::beat();
    let mut time_once = || {
        let start = processor::start();
        let value = body();
        let stop = processor::stop();
        black_box(value);
        let next_beat = processor::beat();
        let beat = previous_beat.min(next_beat);
        previous_beat = next_beat;
        Timing { cycles: stop.saturating_sub(start) as f64 / beat, beat }
    };
    let mut timings: Vec<Timing> = (0..times).map(|_| time_once()).collect();
    timings.sort_by(|one, other| one.cycles.total_cmp(&other.cycles));
    timings.swap_remove(timings.len() / 10)
}

const WARM_UPS: u32 = 2;

/// Run the body between markers: iterations 0, 1, ... `turns` - 1. The earlier ones warm up the last, which is the one
/// to use.
pub fn run_marked(body: &mut Body, benchmark: u16, turns: u16) {
    for iteration in 0..turns {
        kdyno_marker::announce(benchmark, iteration);
        kdyno_marker::open();
        let value = body();
        kdyno_marker::close();
        black_box(value);
    }
}
