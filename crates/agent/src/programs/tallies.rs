//! What the programs of a soak have done, in memory that the agent shares with the processes that look after them.

use crate::sys::Failure;
use kdyno_proto::{Program, Progress, Record};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// All 0 at first, which is a program that runs and has done nothing yet. One process writes it.
#[repr(C)]
#[derive(Default)]
pub struct Tally {
    rounds: AtomicU64,
    failures: AtomicU64,
    elapsed: AtomicU64,
    longest: AtomicU64,
    progress: AtomicU8,
}

const PROGRESS: [Progress; 4] = [Progress::Running, Progress::Over, Progress::LeftOut, Progress::Lost];

/// Return shared tallies, one for each program, never unmapped.
pub fn shared(number: usize) -> Result<&'static [Tally], Failure> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    let bytes = number.max(1) * size_of::<Tally>();
    // SAFETY: a new mapping.
    let memory = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if memory == libc::MAP_FAILED {
        return Err(Failure::last("mmap(MAP_SHARED | MAP_ANONYMOUS)"));
    }
    // SAFETY: zeroed, which is what tallies of 0 look like, aligned to a page, and long enough; atomics may be shared.
    Ok(unsafe { std::slice::from_raw_parts(memory.cast(), number) })
}

impl Tally {
    /// Add a round that came to its end, with status 0; nanoseconds.
    pub fn add_round(&self, elapsed: u64) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.elapsed.fetch_add(elapsed, Ordering::Relaxed);
        self.longest.fetch_max(elapsed, Ordering::Relaxed);
    }

    pub fn add_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub fn progress(&self) -> Progress {
        PROGRESS[usize::from(self.progress.load(Ordering::Acquire))]
    }

    /// End the tally: nothing is added afterwards.
    pub fn end(&self, progress: Progress) {
        self.progress.store(progress as u8, Ordering::Release);
    }

    pub fn record(&self, program: &Program) -> Record {
        let progress = self.progress();
        Record::Tally {
            program: program.name.clone(),
            rounds: self.rounds(),
            failures: self.failures(),
            elapsed: self.elapsed.load(Ordering::Relaxed),
            longest: self.longest.load(Ordering::Relaxed),
            progress,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_progress_survives_the_shared_memory() {
        let [tally] = shared(1).unwrap() else { panic!("one was asked for") };
        for progress in PROGRESS {
            tally.end(progress);
            assert_eq!(tally.progress(), progress);
        }
    }
}
