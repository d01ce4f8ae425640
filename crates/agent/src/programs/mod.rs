//! The job's programs: for each its set-up, its runs, its tear-down, and an end to whatever it left behind.

mod leftovers;
mod root;
mod step;

use crate::sink::Sink;
use kdyno_proto::{Phase, Program, Record};
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

/// Runs them in order. One that fails doesn't keep the others from running.
pub fn run_all(programs: &[Program], surroundings: &Surroundings, sink: &Sink) {
    if !programs.is_empty() {
        leftovers::adopt();
    }
    for program in programs {
        run(program, surroundings, sink);
        sink.emit(&Record::Left { program: program.name.clone(), processes: leftovers::end() });
    }
}

fn run(program: &Program, surroundings: &Surroundings, sink: &Sink) {
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
            // A run that failed leaves nothing that the next one could rely on.
            if !carry_out(Phase::Command, run, &program.command) {
                break;
            }
        }
    }
    if let Some(words) = &program.tear_down {
        carry_out(Phase::TearDown, 0, words);
    }
}
