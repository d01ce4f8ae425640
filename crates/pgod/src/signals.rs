//! Waiting for the next signal or the next point in time, whichever is first. Signals are blocked at all other times, so
//! that none interrupts a snapshot.

use crate::failure::Failure;
use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use std::ptr::null_mut;
use std::time::Instant;

pub struct Signals {
    set: SigSet,
}

#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Event {
    /// The time has come.
    Due,
    /// SIGUSR1: a snapshot now.
    Snapshot,
    /// SIGUSR2: a snapshot now, and a new run.
    NewRun,
    /// SIGTERM or SIGINT: the last snapshot.
    End,
}

impl Signals {
    pub fn block() -> Result<Signals, Failure> {
        let set = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGUSR1, Signal::SIGUSR2]);
        match set.thread_block() {
            Ok(()) => Ok(Signals { set }),
            Err(error) => Err(Failure::of_surroundings(format!("can't block signals: {error}"), "")),
        }
    }

    /// Wait for a signal until a time; signals are looked for at least once, however late it is.
    pub fn wait_until(&self, due: Instant) -> Event {
        loop {
            let left = due.saturating_duration_since(Instant::now());
            let timeout = libc::timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            // SAFETY: set and time are valid for the call; null for a description that we don't want. Unlike signalfd(2),
            // which kernels may lack, this call is in all of them.
            let signal = unsafe { libc::sigtimedwait(self.set.as_ref(), null_mut(), &timeout) };
            match Signal::try_from(signal) {
                Ok(Signal::SIGUSR1) => return Event::Snapshot,
                Ok(Signal::SIGUSR2) => return Event::NewRun,
                Ok(_) => return Event::End,
                Err(_) if left.is_zero() => return Event::Due,
                // The time is over, or a signal that isn't waited for came in between, as SIGCONT does.
                Err(_) => {}
            }
        }
    }
}
