//! Turns a benchmark's loop into samples: warm-up, size of an iteration, iterations.

use super::Clock;
use super::calibration::{self, calibrate};
use super::ticks::Ticks;
use super::warm_up::warm_up;
use crate::settings::Settings;
use crate::sink::Sink;
use crate::sys::Stop;
use crate::watchdog::still_alive;
use kdyno_proto::Record;
use std::path::Path;

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
    /// Measure `body(operations)`, which returns the work done: operations for a latency, bytes for a bandwidth.
    pub fn measure(&self, mut body: impl FnMut(u64) -> Result<u64, Stop>) -> Result<(), Stop> {
        self.measure_parts(|operations, watch| watch.time(|| body(operations)))
    }

    /// Measure like [`Recorder::measure`], for a body that has to set things up again between measured parts: only what
    /// is inside [`Stopwatch::time`] counts.
    pub fn measure_parts(&self, mut body: impl FnMut(u64, &mut Stopwatch) -> Result<u64, Stop>) -> Result<(), Stop> {
        let mut ticks = match self.settings.clock {
            Clock::Model { shift } => Ticks::find().map(|ticks| (ticks, shift)),
            Clock::Wall | Clock::Cycles(_) => None,
        };
        // Of the last iteration, in all: what is set up between measured parts takes its time too.
        let mut lasted = 0;
        let mut once = |operations, iteration| {
            if let Some((ticks, shift)) = &mut ticks {
                ticks.make_room((lasted + lasted / 8) << *shift);
            }
            let start = self.settings.clock.now();
            still_alive(self.settings.clock);
            kdyno_marker::announce(self.index, iteration);
            let mut watch = Stopwatch { clock: self.settings.clock, elapsed: 0 };
            let work = body(operations, &mut watch)?;
            lasted = self.settings.clock.elapsed(start, self.settings.clock.now());
            if let Some(fault) = self.settings.clock.fault() {
                return Err(Stop::Broken(fault));
            }
            Ok((watch.elapsed, work))
        };
        let operations = match self.settings.clock {
            Clock::Model { .. } => {
                warm_up(&mut || once(self.model_operations, kdyno_marker::UNSEEN))?;
                // One is enough for what the emulated PMU models, and all would cost a third of its time.
                once(self.model_operations, kdyno_marker::WARM_UP)?;
                self.model_operations
            }
            Clock::Wall => {
                calibrate(calibration::NANOSECONDS, &mut |operations| once(operations, kdyno_marker::UNSEEN))?
            }
            Clock::Cycles(_) => {
                calibrate(calibration::CYCLES, &mut |operations| once(operations, kdyno_marker::UNSEEN))?
            }
        };
        for iteration in 0..self.settings.iterations {
            let (elapsed, work) = once(operations, iteration as u16)?;
            if elapsed == 0 || work == 0 {
                return Err(Stop::Broken(format!("iteration {iteration}: {work} units of work in no time")));
            }
            // Written now, so that it survives whatever comes next; outside the measured part.
            self.sink.emit(&Record::Sample { benchmark: self.benchmark.into(), iteration, elapsed, work });
        }
        Ok(())
    }
}
