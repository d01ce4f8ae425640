//! The agent as an ordinary program on a host.

mod arguments;
mod carry_out;
mod kexec;
mod list;
mod run;
mod table;

use crate::measure::clock;
use crate::session::VERSION;
use arguments::Verb;
use std::process::ExitCode;

const HELP: &str = "\
kdyno-agent: the LMBench kernel tests, and loads to train with

usage: kdyno-agent list [--json]
       kdyno-agent run TEST... [--param KEY=VALUE]... [--iterations N] [--shift S] [--json]
       kdyno-agent do JOB.json
       kdyno-agent kexec KERNEL [--initrd FILE] --cmdline WORDS
       kdyno-agent kexec-start
       kdyno-agent tsc
       kdyno-agent --version | --help

TEST is a name from 'list', 'lmbench' or 'general' for the tests of that suite, or 'all'. --param goes to every test
that has KEY. 'general' is a load to train with, not to judge by.
'do' does a job that kdyno wrote, on this host; its records go where the job says.
'kexec' loads a kernel, and 'kexec-start' starts the loaded kernel at once, with nothing stopped before: it is the last
step of a shutdown. Both need root.
'tsc' prints how fast the time stamp counter runs, in kHz.
--shift is for a guest of QEMU's -icount shift=S: instructions are counted instead of nanoseconds.
Without --json the result is a table; with it, one record a line.
As PID 1 the agent does the job in /kdyno/job.json instead.
";

pub fn run() -> ExitCode {
    match arguments::parse(std::env::args_os().skip(1)).and_then(act) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("kdyno-agent: {message}");
            ExitCode::from(1)
        }
    }
}

fn act(verb: Verb) -> Result<ExitCode, String> {
    match verb {
        Verb::Help => print(HELP),
        Verb::Version => print(&format!("kdyno-agent {VERSION}\n")),
        Verb::List { json } => print(&if json { list::json() } else { list::text() }),
        Verb::Run(run) => return run::run(&run),
        Verb::Do { job } => carry_out::job(&job)?,
        Verb::Kexec { kernel, initrd, words } => kexec::load(&kernel, initrd.as_deref(), &words)?,
        Verb::KexecStart => kexec::start()?,
        Verb::Tsc => print(&format!("{}\n", clock::tsc_khz())),
    }
    Ok(ExitCode::SUCCESS)
}

/// Print to standard output; a reader that closes its end is not an error.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}
