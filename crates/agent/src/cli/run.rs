//! Runs tests on this host.

use super::arguments::Run;
use super::table;
use crate::session;
use crate::sink::{INFRASTRUCTURE, Sink};
use crate::sys::{Failure, fd};
use kdyno_proto::Record;
use std::error::Error;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::ExitCode;

/// Run the plan. Exit with 3 when a benchmark broke; one that this kernel doesn't support is not an error.
pub fn run(run: &Run) -> Result<ExitCode, String> {
    run.settings.clock.prove()?;
    let sink = if run.json { stream(run) } else { print_table(run) };
    match sink.map_err(|error| error.to_string())?.any_broken() {
        true => Ok(ExitCode::from(INFRASTRUCTURE)),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Run the tests, and write records on standard output as they are made.
fn stream(run: &Run) -> Result<Sink, Box<dyn Error>> {
    let sink = Sink::new(std::io::stdout().as_fd().try_clone_to_owned()?)?;
    session::hello(&run.settings, &sink);
    session::run_all(&run.plan, &run.settings, &sink, |_| ());
    sink.end();
    Ok(sink)
}

/// Run the tests, and print a table, each test's part of it when the test has ended.
fn print_table(run: &Run) -> Result<Sink, Box<dyn Error>> {
    // Records gather in memory, so that nothing but the benchmark runs while it is measured.
    let memory = memory()?;
    let sink = Sink::new(memory.try_clone()?)?;
    let mut tail = Tail { file: File::from(memory), bytes_read: 0 };
    super::print(&table::heading());
    for planned in &run.plan {
        session::run_all(std::slice::from_ref(planned), &run.settings, &sink, |_| ());
        super::print(&table::rows(&tail.records()?, run.settings.lane));
    }
    Ok(sink)
}

fn memory() -> Result<OwnedFd, Failure> {
    // SAFETY: a C string.
    fd::owned("memfd_create()", unsafe { libc::memfd_create(c"records".as_ptr(), libc::MFD_CLOEXEC) })
}

/// What has come since it was last asked.
struct Tail {
    file: File,
    bytes_read: u64,
}

impl Tail {
    fn records(&mut self) -> Result<Vec<Record>, Box<dyn Error>> {
        // Writer and reader share the file's position, so the reader says where.
        let mut bytes = vec![0; (self.file.metadata()?.len() - self.bytes_read) as usize];
        self.file.read_exact_at(&mut bytes, self.bytes_read)?;
        self.bytes_read += bytes.len() as u64;
        let text = String::from_utf8(bytes)?;
        Ok(text.lines().map(Record::from_line).collect::<Result<_, _>>()?)
    }
}
