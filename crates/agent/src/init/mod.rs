//! The agent as PID 1 of a guest: prepare, read the job, do it, restart the machine.
//!
//! The host starts QEMU with `-no-reboot`, so a restart ends it; microvm has no other way to power off. Whatever goes
//! wrong is said on the console and ends the same way: then the stream has no `end`, which the host takes for a failure.

mod channel;
mod command;
mod console;
mod job;
mod loopback;
mod mounts;
mod port;
mod shell;

use crate::addresses;
use crate::counters::Snapshots;
use crate::session;
use crate::sink::Sink;
use job::Plan;
use kdyno_proto::COUNTERS_PORT;

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
    let plan = Plan::read()?;
    loopback::up();
    let sink = Sink::new(channel::open(&plan.channel, plan.interactive)?).map_err(|failure| failure.to_string())?;
    if !plan.tests.is_empty() {
        plan.settings.clock.prove()?;
    }
    session::hello(&plan.settings, &sink);
    match &plan.counters {
        None => session::run_all(&plan.tests, &plan.settings, &sink, |_| ()),
        Some(counters) => {
            let port = port::open(COUNTERS_PORT, false)?.into();
            let mut snapshots = Snapshots::begin(counters, plan.tests.len(), port)?;
            session::run_all(&plan.tests, &plan.settings, &sink, |test| snapshots.take(test));
            snapshots.send()?;
        }
    }
    addresses::release();
    if let Some(command) = &plan.command {
        command::run(command, &sink);
    }
    if plan.interactive {
        shell::run()?;
    }
    sink.end();
    Ok(())
}
