//! What all loads have in common: rounds of parts, and what a part does when the kernel lacks something.

use super::mix::Mix;
use crate::measure::Recorder;
use crate::sys::{Failure, Stop, errno};
use std::io;

/// The seed of all loads; each has a sequence of its own.
const SEED: u64 = 17;

/// Run rounds of a load as ordinary processes do, which wake each other and are preempted: not as SCHED_BATCH.
pub fn measure(recorder: &Recorder, mut round: impl FnMut(&mut Mix) -> Result<(), Stop>) -> Result<(), Stop> {
    schedule(libc::SCHED_OTHER);
    let mut mix = Mix::new(SEED);
    recorder.measure(|rounds| {
        for _ in 0..rounds {
            round(&mut mix)?;
        }
        Ok(rounds)
    })
}

/// Set the scheduling policy of this process and its future children, one of those that need no privilege.
pub fn schedule(policy: libc::c_int) {
    let no_priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: `no_priority` is a sched_param. Failure costs only variety.
    unsafe { libc::sched_setscheduler(0, policy, &no_priority) };
}

/// Leave out what this kernel lacks.
pub fn optional<E: Into<Stop>>(part: Result<(), E>) -> Result<(), Stop> {
    match part.map_err(Into::into) {
        Err(Stop::Unsupported(_)) => Ok(()),
        result => result,
    }
}

/// Gives the error of a call of the standard library's its name.
pub trait Named<T> {
    fn named(self, call: &'static str) -> Result<T, Failure>;
}

impl<T> Named<T> for io::Result<T> {
    fn named(self, call: &'static str) -> Result<T, Failure> {
        self.map_err(|error| match error.raw_os_error() {
            Some(errno) => Failure::Errno { call, errno },
            // The library's own: an end of file before all was read.
            None => Failure::Short { call, wanted: 1, got: 0 },
        })
    }
}

/// Demand that a call fails, and with this error.
pub fn fails_with(call: &'static str, expected: i32, result: i64) -> Result<(), Failure> {
    match errno::last() {
        errno if result < 0 && errno == expected => Ok(()),
        errno if result < 0 => Err(Failure::Errno { call, errno }),
        _ => Err(Failure::Errno { call, errno: 0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_lacks_is_left_out_and_what_broke_is_not() {
        let failed = |errno| Err(Failure::Errno { call: "eventfd()", errno });
        assert_eq!(optional(failed(libc::ENOSYS)), Ok(()));
        assert_eq!(optional(failed(libc::EIO)), Err(Stop::Broken("eventfd(): EIO".into())));
    }

    #[test]
    fn an_end_of_file_is_told_as_one() {
        let failure = Err::<(), _>(io::Error::from(io::ErrorKind::UnexpectedEof)).named("read(tcp)").unwrap_err();
        assert!(failure.to_string().starts_with("read(tcp): the other side has gone"), "{failure}");
    }
}
