//! The job's programs: for each its set-up, its runs, its tear-down, and an end to whatever it left behind.

mod keeper;
mod leftovers;
mod memory;
mod root;
mod soak;
mod step;
mod tallies;

use crate::sink::Sink;
use kdyno_proto::{Phase, Program, Record, Soak};
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

impl Surroundings {
    /// Runs one step of a program; `until` is as in [`Step`].
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

/// Runs them: in order, or all at once for the time of a soak. One that fails doesn't keep the others from running.
pub fn run_all(
    programs: &[Program],
    soak: Option<Soak>,
    surroundings: &Surroundings,
    sink: &Sink,
) -> Result<(), String> {
    if !programs.is_empty() {
        leftovers::adopt();
    }
    if let Some(soak) = soak {
        return soak::run(programs, soak, surroundings, sink).map_err(|failure| failure.to_string());
    }
    for program in programs {
        run(program, surroundings, sink);
        sink.emit(&Record::Left { program: program.name.clone(), processes: leftovers::end() });
    }
    Ok(())
}

fn run(program: &Program, surroundings: &Surroundings, mut sink: &Sink) {
    let mut carry_out = |phase, run, words: &[String]| {
        sink.emit(&Record::Step { program: program.name.clone(), phase, run });
        let Outcome { status, elapsed, user, system } = surroundings.carry_out(program, words, None, &mut sink);
        sink.emit(&Record::Exited { status, elapsed, user, system });
        status == 0
    };
    let ready = program.set_up.as_ref().is_none_or(|words| carry_out(Phase::SetUp, 0, words));
    if ready {
        // A run that failed leaves nothing that the next one could rely on.
        let _all_went_well = (0..program.runs).all(|run| carry_out(Phase::Command, run, &program.command));
    }
    if let Some(words) = &program.tear_down {
        carry_out(Phase::TearDown, 0, words);
    }
}
