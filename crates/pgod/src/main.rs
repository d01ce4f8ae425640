//! kdyno-pgod: keeps what an instrumented kernel counts, on a live machine.
//!
//! A kernel with GCOV_KERNEL shows its counters as `.gcda` files in debugfs. They are gone with the boot; this program
//! takes snapshots of all of them on a timer, each of which is on the disk whole or not at all.

mod arguments;
mod daemon;
mod failure;
mod gcov;
mod kernel;
mod listing;
mod prune;
mod regular;
mod send;
mod signals;
mod snapshot;
mod status;
mod store;
mod tar;

use arguments::Verb;
use failure::Failure;
use std::io::Write;
use std::process::ExitCode;

const VERSION: &str = env!("CARGO_PKG_VERSION");

const HELP: &str = "\
kdyno-pgod: keeps what an instrumented kernel counts, on a live machine

usage: kdyno-pgod run [--every TIME] [--keep N] [--max-bytes SIZE] [--gcov DIR] [--directory DIR]
       kdyno-pgod status [--json] [--directory DIR]
       kdyno-pgod send [--boot ID]... [--directory DIR]
       kdyno-pgod --version | --help

run     takes a snapshot of all counters at once, every TIME (60s), on SIGUSR1, and on SIGTERM, which ends it.
        SIGUSR2: a snapshot, then all counters are reset, and a new run begins
status  what snapshots there are
send    the last snapshot of each run, as one archive on standard output: what `kdyno profile pull HOST` asks for

--directory  where snapshots are (/var/lib/kdyno-pgod)
--gcov       where counters are (/sys/kernel/debug/gcov)
--every      10s, 5m, 1h
--keep       snapshots of one run (3)
--max-bytes  of all snapshots: 500K, 200M, 2G (1G)
--boot       only this boot's, by the start of its id; may be given several times
";

fn main() -> ExitCode {
    match arguments::parse(std::env::args_os().skip(1)).and_then(act) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&failure.to_string());
            ExitCode::from(failure.exit_code)
        }
    }
}

fn act(verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Help => print(HELP),
        Verb::Version => print(&format!("kdyno-pgod {VERSION}\n")),
        Verb::Run(settings) => return daemon::run(&settings),
        Verb::Status { directory, json } => print(&status::status(&directory, json)?),
        Verb::Send { directory, boots } => return send::send(&directory, &boots),
    }
    Ok(())
}

/// Print to standard output; a reader that closes its end is not an error.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Write one line for the journal.
fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "kdyno-pgod: {}", message.replace('\n', " "));
}
