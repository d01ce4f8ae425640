//! kdyno-agent: the LMBench kernel tests, and loads to train with, as one static binary.
//!
//! As PID 1 of a guest it does the job in `/kdyno/job.json` and reports on a virtio port; on a host it is an ordinary
//! program. Either way it only counts: values, statistics and verdicts are the host's business.

mod addresses;
mod bench;
mod cli;
mod counters;
mod general;
mod hello;
mod init;
mod job;
mod measure;
mod nearest;
mod params;
mod processes;
mod programs;
mod rest;
mod runner;
mod session;
mod settings;
mod sink;
mod sys;
mod test;
mod watchdog;

use std::process::ExitCode;

fn main() -> ExitCode {
    if std::process::id() == 1 {
        addresses::fix();
        init::run();
    }
    let verb = std::env::args_os().nth(1).unwrap_or_default();
    if verb == general::compiler::ARGUMENT {
        return general::compiler::main(std::env::args().skip(2)).into();
    }
    if verb == "run" || verb == "do" {
        addresses::fix();
    }
    cli::run()
}
