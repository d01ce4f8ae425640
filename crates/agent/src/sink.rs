//! Where records go: one descriptor, shared by the agent and the processes it forks.
//!
//! A benchmark's process writes its own records, each with one write. Passing them through the agent would make a second
//! process runnable just when the next iteration starts, which on one CPU is visible in the samples.

use kdyno_proto::Record;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::{Failure, fd};

pub struct Sink {
    out: OwnedFd,
    /// The counts, in memory that survives the processes which write to it.
    counts: NonNull<Counts>,
}

/// All 0 at first.
#[repr(C)]
struct Counts {
    written: AtomicU64,
    broken: AtomicU64,
}

/// Exit code when the infrastructure failed, as in all of kdyno.
pub const INFRASTRUCTURE: u8 = 3;

impl Sink {
    pub fn new(out: OwnedFd) -> Result<Sink, Failure> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new, zeroed mapping, which is what Counts of 0 look like. Never unmapped: a sink lives as long as
        // the program.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<Counts>(), access, flags, -1, 0) };
        match NonNull::new(memory.cast()) {
            Some(counts) if memory != libc::MAP_FAILED => Ok(Sink { out, counts }),
            _ => Err(Failure::last("mmap(MAP_SHARED | MAP_ANONYMOUS)")),
        }
    }

    fn counts(&self) -> &Counts {
        // SAFETY: see new().
        unsafe { self.counts.as_ref() }
    }

    /// Return whether any benchmark was recorded as broken.
    pub fn any_broken(&self) -> bool {
        self.counts().broken.load(Ordering::Relaxed) > 0
    }

    /// Write one record. Without a way to report there is nothing left to do, so a failure ends the process.
    pub fn emit(&self, record: &Record) {
        if let Err(failure) = fd::write_all("write(records)", self.out.as_raw_fd(), record.to_line().as_bytes()) {
            give_up(failure);
        }
        self.counts().written.fetch_add(1, Ordering::Relaxed);
        if matches!(record, Record::Broken { .. }) {
            self.counts().broken.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Write the last record, which proves how many came before.
    pub fn end(&self) {
        self.emit(&Record::End { records: self.counts().written.load(Ordering::Relaxed) });
    }
}

/// End this process: as PID 1 by way of the panic hook, which restarts the machine.
fn give_up(failure: Failure) -> ! {
    if std::process::id() == 1 {
        panic!("{failure}");
    }
    // A reader who has seen enough needs no message.
    if !matches!(failure, Failure::Errno { errno: libc::EPIPE, .. }) {
        eprintln!("kdyno-agent: {failure}");
    }
    // SAFETY: no pointers; _exit, because this may be a forked half of the agent.
    unsafe { libc::_exit(INFRASTRUCTURE.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_counts_what_came_before() {
        let (read, write) = fd::pipe().unwrap();
        let sink = Sink::new(write).unwrap();
        sink.emit(&Record::Left { program: "x".into(), processes: 0 });
        assert!(!sink.any_broken());
        sink.end();
        let mut buffer = [0; 128];
        // SAFETY: `buffer` is writable for its length.
        let got = unsafe { libc::read(read.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        let text = std::str::from_utf8(&buffer[..got as usize]).unwrap();
        let records: Vec<_> = text.lines().map(|line| Record::from_line(line).unwrap()).collect();
        assert_eq!(records, [Record::Left { program: "x".into(), processes: 0 }, Record::End { records: 1 }]);
    }
}
