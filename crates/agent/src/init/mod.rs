//! The agent as PID 1 of a guest: prepare, read the job, do it, restart the machine.
//!
//! The host starts QEMU with `-no-reboot`, so a restart ends it; microvm has no other way to power off. Whatever goes
//! wrong is said on the console and ends the same way: then the stream has no `end`, which the host takes for a failure.

pub mod channel;
mod console;
mod loopback;
mod mounts;
mod port;
#[cfg(test)]
pub use port::no_port;
mod shell;

use crate::addresses;
use crate::counters::Snapshots;
use crate::job::Plan;
use crate::programs::{self, Surroundings};
use crate::session;
use crate::sink::Sink;
use kdyno_proto::{COUNTERS_PORT, JOB_PATH};

pub fn run() -> ! {
    std::panic::set_hook(Box::new(|panic| {
        console::say(&format!("{panic}"));
        // A forked benchmark that panics ends as a `broken` record; PID 1 has nobody to tell.
        if std::process::id() == 1 {
            console::restart();
        }
    }));
    mounts::mount_all();
    if let Err(message) = serve() {
        console::say(&message);
    }
    console::restart()
}

fn serve() -> Result<(), String> {
    let plan = Plan::read(JOB_PATH)?;
    loopback::up();
    let sink = Sink::new(channel::open(&plan.channel, plan.interactive)?).map_err(|failure| failure.to_string())?;
    match &plan.counters {
        None => session::tests(&plan, &sink, |_| ())?,
        Some(counters) => {
            let port = port::open(COUNTERS_PORT, false)?.into();
            let mut snapshots = Snapshots::begin(counters, plan.tests.len(), port)?;
            session::tests(&plan, &sink, |test| snapshots.take(test))?;
            snapshots.send()?;
        }
    }
    programs::run_all(&plan, Surroundings::of_guest(&plan.programs), &sink)?;
    if plan.interactive {
        addresses::randomise(true);
        shell::run()?;
    }
    sink.end();
    Ok(())
}
