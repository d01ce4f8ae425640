//! Turns a benchmark's loop into samples: warm-up, size of an iteration, iterations.

use super::Clock;
use crate::runner::still_alive;
use crate::settings::Settings;
use crate::sink::Sink;
use crate::sys::Stop;
use kdyno_proto::Record;
use std::path::Path;

/// How long one iteration should last in the wall lane, in nanoseconds: the clock's own cost and resolution are then
/// less than 1 in 10^4, and a suite of 40 benchmarks still takes seconds.
const ENOUGH: u64 = 5_000_000;

/// Iterations of the model lane that are thrown away. One is enough for caches and lazily made kernel objects; a TCP
/// connection takes three until its window has grown.
const WARM_UPS: u32 = 3;

/// An iteration of the wall lane never does more operations than this.
const MOST_OPERATIONS: u64 = 1 << 24;

/// Takes the samples of one benchmark.
pub struct Recorder<'a> {
    /// Name in the records.
    pub benchmark: &'a str,
    /// Its place among the benchmarks of this run, from 0: what the emulated PMU calls it.
    pub index: u16,
    /// Operations of one iteration in the model lane.
    pub model_operations: u64,
    pub settings: &'a Settings,
    pub sink: &'a Sink,
    /// A directory of this benchmark's own; removed for it, crash or not.
    pub scratch: &'a Path,
}

/// Adds up the measured parts of an iteration.
pub struct Stopwatch {
    clock: Clock,
    elapsed: u64,
}

impl Stopwatch {
    #[inline(always)]
    pub fn time<T>(&mut self, body: impl FnOnce() -> T) -> T {
        let start = self.clock.now();
        kdyno_marker::open();
        let result = body();
        kdyno_marker::close();
        self.elapsed += self.clock.elapsed(start, self.clock.now());
        result
    }
}

impl Recorder<'_> {
    /// Measures `body(operations)`, which returns the work done: operations for a latency, bytes for a bandwidth.
    pub fn measure(&self, mut body: impl FnMut(u64) -> Result<u64, Stop>) -> Result<(), Stop> {
        self.measure_parts(|operations, watch| watch.time(|| body(operations)))
    }

    /// Like [`Recorder::measure`], for a body that has to set things up again between measured parts: only what is
    /// inside [`Stopwatch::time`] counts.
    pub fn measure_parts(&self, mut body: impl FnMut(u64, &mut Stopwatch) -> Result<u64, Stop>) -> Result<(), Stop> {
        let mut once = |operations, iteration| {
            kdyno_marker::announce(self.index, iteration);
            let mut watch = Stopwatch { clock: self.settings.clock, elapsed: 0 };
            let work = body(operations, &mut watch)?;
            Ok((watch.elapsed, work))
        };
        let operations = match self.settings.clock {
            Clock::Model { .. } => {
                for left in (0..WARM_UPS).rev() {
                    // The last is enough for what the emulated PMU models, and all would cost a third of its time.
                    let announced = if left == 0 { kdyno_marker::WARM_UP } else { kdyno_marker::UNSEEN };
                    once(self.model_operations, announced)?;
                }
                self.model_operations
            }
            Clock::Wall => calibrate(&mut |operations| once(operations, kdyno_marker::UNSEEN))?,
        };
        for iteration in 0..self.settings.iterations {
            let (elapsed, work) = once(operations, iteration as u16)?;
            if elapsed == 0 || work == 0 {
                return Err(Stop::Broken(format!("iteration {iteration}: {work} units of work in no time")));
            }
            still_alive();
            // Written now, so that it survives whatever comes next; outside the measured part.
            self.sink.emit(&Record::Sample { benchmark: self.benchmark.into(), iteration, elapsed, work });
        }
        Ok(())
    }
}

/// Finds the number of operations that last long enough, and warms up by doing so.
fn calibrate(once: &mut impl FnMut(u64) -> Result<(u64, u64), Stop>) -> Result<u64, Stop> {
    let mut operations = 1;
    loop {
        let (elapsed, _) = once(operations)?;
        if elapsed >= ENOUGH || operations >= MOST_OPERATIONS {
            return Ok(operations);
        }
        // The first tries are cold and say little, so no step is larger than ten times.
        let factor = (ENOUGH / elapsed.max(1) + 1).clamp(2, 10);
        operations = (operations * factor).min(MOST_OPERATIONS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration_stops_when_an_iteration_lasts_long_enough() {
        let operations = calibrate(&mut |operations| Ok((operations * 1_000, operations))).unwrap();
        assert!((5_000..=10_000).contains(&operations), "{operations}");
    }

    #[test]
    fn calibration_gives_up_on_a_clock_that_stands_still() {
        assert_eq!(calibrate(&mut |_| Ok((0, 1))).unwrap(), MOST_OPERATIONS);
    }

    #[test]
    fn calibration_passes_a_failure_on() {
        let stop = Stop::Broken("no".into());
        assert_eq!(calibrate(&mut |_| Err(stop.clone())), Err(stop));
    }
}
