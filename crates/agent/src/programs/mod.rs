//! The job's programs: for each its set-up, its runs, its tear-down, and an end to whatever it left behind.

mod leftovers;
mod root;
mod step;

use crate::addresses;
use crate::measure::Clock;
use crate::settings::Settings;
use crate::sink::Sink;
use kdyno_proto::{Kind, Measured, Phase, Program, Record};
use step::{Outcome, Step};

/// What the steps of programs find around them.
pub struct Surroundings {
    /// PATH; None: the agent's own.
    path: Option<&'static str>,
    /// Where the root file system of a guest is mounted, or why it isn't; None: a host's own is the one.
    root: Result<Option<&'static str>, String>,
}

impl Surroundings {
    /// Those of a guest. The root file system is only mounted if a program is to run in it.
    pub fn of_guest(programs: &[Program]) -> Surroundings {
        let root = if programs.iter().any(|program| program.in_root) { root::mount().map(Some) } else { Ok(None) };
        Surroundings { path: Some("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), root }
    }

    /// Those of a host: what the agent was called with.
    pub fn of_host() -> Surroundings {
        Surroundings { path: None, root: Ok(None) }
    }
}

/// Runs them in order. One that fails doesn't keep the others from running. `first` is the place of the first benchmark
/// among them in the run.
pub fn run_all(programs: &[Program], first: u16, surroundings: &Surroundings, settings: &Settings, sink: &Sink) {
    if !programs.is_empty() {
        leftovers::adopt();
    }
    let mut index = first;
    for program in programs {
        // Random ones would make ever new user code for the emulated PMU, and other page tables in each boot.
        addresses::randomise(program.measured.is_none());
        let meter = program.measured.as_ref().map(|measured| Meter { measured, index, clock: settings.clock });
        if let Some(meter) = &meter {
            meter.begin(program, settings, sink);
            index += 1;
        }
        run(program, meter.as_ref(), surroundings, sink);
        sink.emit(&Record::Left { program: program.name.clone(), processes: leftovers::end() });
    }
}

/// Measures runs of a command, as a test's benchmark is measured.
struct Meter<'a> {
    measured: &'a Measured,
    /// Its place among the benchmarks of this run: what the emulated PMU calls it.
    index: u16,
    clock: Clock,
}

impl Meter<'_> {
    fn begin(&self, program: &Program, settings: &Settings, sink: &Sink) {
        sink.emit(&Record::Benchmark {
            name: self.measured.benchmark.clone(),
            test: program.name.clone(),
            unit: settings.lane().row().unit(Kind::Latency),
            direction: Kind::Latency.direction(),
            description: self.measured.description.clone(),
        });
    }

    /// One run, which says whether it went well. All that any process does meanwhile is in it.
    fn time(&self, run: u32, sink: &Sink, body: impl FnOnce() -> bool) -> bool {
        kdyno_marker::announce(self.index, run as u16);
        let start = self.clock.now();
        kdyno_marker::open();
        let went_well = body();
        kdyno_marker::close();
        let elapsed = self.clock.elapsed(start, self.clock.now());
        if went_well {
            let (benchmark, work) = (self.measured.benchmark.clone(), self.measured.operations);
            sink.emit(&Record::Sample { benchmark, iteration: run, elapsed, work });
        }
        went_well
    }
}

fn run(program: &Program, meter: Option<&Meter>, surroundings: &Surroundings, sink: &Sink) {
    let carry_out = |phase, run, words: &[String]| {
        sink.emit(&Record::Step { program: program.name.clone(), phase, run });
        let outcome = match (program.in_root, &surroundings.root) {
            (true, Err(why)) => step::impossible(&format!("no root file system: {why}"), sink),
            (true, Ok(root)) => Step { words, program, path: surroundings.path, root: *root }.run(sink),
            (false, _) => Step { words, program, path: surroundings.path, root: None }.run(sink),
        };
        let Outcome { status, elapsed, user, system } = outcome;
        sink.emit(&Record::Exited { status, elapsed, user, system });
        status == 0
    };
    let ready = program.set_up.as_ref().is_none_or(|words| carry_out(Phase::SetUp, 0, words));
    if ready {
        for run in 0..program.runs {
            let command = || carry_out(Phase::Command, run, &program.command);
            let went_well = meter.map_or_else(command, |meter| meter.time(run, sink, command));
            if !went_well {
                // It leaves nothing that the next one could rely on.
                break;
            }
        }
    }
    if let Some(words) = &program.tear_down {
        carry_out(Phase::TearDown, 0, words);
    }
}
