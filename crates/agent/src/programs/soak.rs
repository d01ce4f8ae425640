//! All programs at once, each looked after by a process of its own, and looks at memory meanwhile.

use super::keeper::Keeper;
use super::{Surroundings, leftovers, memory, tallies};
use crate::processes;
use crate::sink::Sink;
use crate::sys::peer::die_with;
use crate::sys::{Failure, check};
use kdyno_proto::{Program, Progress, Soak};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(100);

/// Return when the time is over and nothing of any program is left.
pub fn run(programs: &[Program], soak: Soak, surroundings: &Surroundings, sink: &Sink) -> Result<(), Failure> {
    let tallies = tallies::shared(programs.len())?;
    rest();
    let begin = Instant::now();
    sink.emit(&memory::look(begin.elapsed(), true));
    let until = begin + Duration::from_secs(soak.seconds.into());
    let mut keepers = Vec::with_capacity(programs.len());
    for (program, tally) in programs.iter().zip(tallies) {
        keepers.push(start(&Keeper { program, until, surroundings, tally, sink })?);
    }
    let every = Duration::from_secs(soak.every.into());
    let mut next = begin + every;
    let mut left = keepers.len();
    while left > 0 {
        sleep(PAUSE);
        while let Some((pid, _)) = processes::reap(libc::WNOHANG) {
            if let Some(place) = keepers.iter().position(|keeper| *keeper == pid) {
                left -= 1;
                if tallies[place].progress() == Progress::Running {
                    tallies[place].end(Progress::Lost);
                }
            }
        }
        if left > 0 && Instant::now() >= next {
            next = Instant::now() + every;
            sink.emit(&memory::look(begin.elapsed(), false));
            tell(programs, tallies, sink);
        }
    }
    leftovers::end();
    tell(programs, tallies, sink);
    rest();
    sink.emit(&memory::look(begin.elapsed(), true));
    Ok(())
}

/// Drop the guest's caches; a host's are left alone.
fn rest() {
    if std::process::id() == 1 {
        memory::give_caches_back();
    }
}

fn tell(programs: &[Program], tallies: &[tallies::Tally], sink: &Sink) {
    for (program, tally) in programs.iter().zip(tallies) {
        sink.emit(&tally.record(program));
    }
}

/// Fork the process that looks after a program.
fn start(keeper: &Keeper) -> Result<libc::pid_t, Failure> {
    // SAFETY: the agent has one thread, so the child may go on as if nothing happened.
    let (agent, pid) = unsafe { (libc::getpid(), libc::fork()) };
    if check("fork()", pid)? > 0 {
        return Ok(pid);
    }
    die_with(agent);
    keeper.keep();
    // SAFETY: no pointers; _exit runs nothing of the agent's.
    unsafe { libc::_exit(0) }
}
