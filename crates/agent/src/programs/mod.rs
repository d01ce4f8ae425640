//! The job's programs: for each its set-up, its runs and the reports on them, its tear-down, and an end to whatever it
//! left behind.

#[cfg(test)]
mod formats;
mod keeper;
pub mod leftovers;
mod memory;
mod root;
mod soak;
mod step;
mod tallies;

use crate::addresses;
use crate::job::Plan;
use crate::measure::Clock;
use crate::settings::Settings;
use crate::sink::Sink;
use kdyno_processors::Processors;
use kdyno_proto::{Direction, Measured, Phase, Program, Record};
use std::time::Instant;
use step::{Listener, Outcome, Step};

/// What the steps of programs find around them.
pub struct Surroundings {
    /// PATH; None: the agent's own.
    path: Option<&'static str>,
    /// Where the root file system of a guest is mounted, or why it isn't; None: a host's own is the one.
    root: Result<Option<&'static str>, String>,
}

impl Surroundings {
    /// Return the surroundings of a guest's programs. The root file system is only mounted if a program is to run in
    /// it.
    pub fn of_guest(programs: &[Program]) -> Surroundings {
        let is_needed = programs.iter().any(|program| program.in_root);
        let root = if is_needed { root::mount_base().and_then(|()| root::mount_afresh()).map(Some) } else { Ok(None) };
        Surroundings { path: Some("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"), root }
    }

    /// Return the surroundings of a host's programs: what the agent was called with.
    pub fn of_host() -> Surroundings {
        Surroundings { path: None, root: Ok(None) }
    }

    /// Empty what the last program may have written to.
    fn renew(&mut self) {
        if let Ok(Some(_)) = self.root {
            self.root = root::mount_afresh().map(Some);
        }
    }

    /// Run one step of a program; `until` is as in [`Step`].
    fn carry_out(
        &self,
        program: &Program,
        words: &[String],
        until: Option<Instant>,
        listener: &mut dyn Listener,
    ) -> Outcome {
        let root = match (program.in_root, &self.root) {
            (true, Err(why)) => return step::impossible(&format!("no root file system: {why}"), listener),
            (true, Ok(root)) => *root,
            (false, _) => None,
        };
        Step { words, program, path: self.path, root, until }.run(listener)
    }
}

/// Run a job's programs: in order, or all at once for the time of a soak. One that fails doesn't keep the others from
/// running.
pub fn run_all(plan: &Plan, mut surroundings: Surroundings, sink: &Sink) -> Result<(), String> {
    let Plan { programs, settings, .. } = plan;
    if !programs.is_empty() {
        leftovers::adopt();
    }
    if let Some(soak) = plan.soak {
        addresses::randomise(true);
        return soak::run(programs, soak, &surroundings, sink).map_err(|failure| failure.to_string());
    }
    let mut index = plan.benchmarks();
    for (index_of_program, program) in programs.iter().enumerate() {
        if index_of_program > 0 && program.in_root {
            surroundings.renew();
        }
        // Random ones would make ever new user code for the emulated PMU, and other page tables in each boot.
        addresses::randomise(program.measured.is_none());
        let meter = program.measured.as_ref().map(|measured| Meter { measured, index, clock: settings.clock });
        if let Some(meter) = &meter {
            meter.begin(program, settings, sink);
            index += 1;
        }
        run(program, meter.as_ref(), &surroundings, sink);
        sink.emit(&Record::Left { program: program.name.clone(), processes: leftovers::end() });
    }
    Ok(())
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
            unit: settings.lane.row().unit(Direction::Lower).into(),
            direction: Direction::Lower,
            description: self.measured.description.clone(),
        });
    }

    /// Return what a run gives, and how long it took by the lane's clock. All that any process does meanwhile is in it.
    fn time(&self, run: u32, body: impl FnOnce() -> Outcome) -> (Outcome, u64) {
        kdyno_marker::announce(self.index, run as u16);
        let start = self.clock.now();
        kdyno_marker::open();
        let outcome = body();
        kdyno_marker::close();
        (outcome, self.clock.elapsed(start, self.clock.now()))
    }

    fn tell(&self, run: u32, elapsed: u64, sink: &Sink) {
        let (benchmark, work) = (self.measured.benchmark.clone(), self.measured.operations);
        sink.emit(&Record::Sample { benchmark, iteration: run, elapsed, work });
    }
}

fn run(program: &Program, meter: Option<&Meter>, surroundings: &Surroundings, sink: &Sink) {
    let carry_out = |phase, run, words: &[String], meter: Option<&Meter>| {
        sink.emit(&Record::Step { program: program.name.clone(), phase, run });
        let before = Processors::now();
        let body = || surroundings.carry_out(program, words, None, &mut &*sink);
        let (outcome, measured) = match meter {
            Some(meter) => {
                let (outcome, elapsed) = meter.time(run, body);
                (outcome, Some((meter, elapsed)))
            }
            None => (body(), None),
        };
        let busy = before.zip(Processors::now()).map(|(before, now)| now.since(before)).unwrap_or_default();
        let Outcome { status, elapsed, user, system } = outcome;
        sink.emit(&Record::Exited {
            status,
            elapsed,
            user,
            system,
            busy_user: busy.user.as_nanos() as u64,
            busy_system: busy.system.as_nanos() as u64,
        });
        if let (0, Some((meter, elapsed))) = (status, measured) {
            meter.tell(run, elapsed, sink);
        }
        status == 0
    };
    let ready = program.set_up.as_ref().is_none_or(|words| carry_out(Phase::SetUp, 0, words, None));
    if ready {
        for run in 0..program.runs {
            let went_well = carry_out(Phase::Command, run, &program.command, meter)
                && program.report.as_ref().is_none_or(|words| carry_out(Phase::Report, run, words, None));
            if !went_well {
                // It leaves nothing that the next one could rely on.
                break;
            }
        }
    }
    if let Some(words) = &program.tear_down {
        carry_out(Phase::TearDown, 0, words, None);
    }
}
