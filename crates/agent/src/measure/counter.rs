//! A counter of the core PMU, by perf_event_open(2): how often an event happened on one CPU, in user code and in the
//! kernel.

use crate::sys::{Failure, fd};
use std::os::fd::{IntoRawFd, RawFd};

/// PERF_ATTR_SIZE_VER0 of include/uapi/linux/perf_event.h: every kernel takes a perf_event_attr of this size.
const SIZE: u32 = 64;
/// PERF_FORMAT_TOTAL_TIME_ENABLED and PERF_FORMAT_TOTAL_TIME_RUNNING.
const WITH_TIMES: u64 = 1 | 2;
/// The bit `pinned` of perf_event_attr: the event counts all the time, or never again.
const PINNED: u64 = 1 << 2;
/// PERF_FLAG_FD_CLOEXEC.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// What is counted: `type` and `config` of perf_event_attr.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    kind: u32,
    config: u64,
}

/// PERF_COUNT_HW_CPU_CYCLES of PERF_TYPE_HARDWARE: cycles of the core in which it isn't halted.
pub const CYCLES: Event = Event { kind: 0, config: 0 };

/// A counter, which must be open to be read. Forked processes can read it; programs that they execute can't.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    event: Event,
    /// -1 where it isn't open.
    fd: RawFd,
}

/// The first version of perf_event_attr.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// What read(2) returns of a counter; times are nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Reading {
    value: u64,
    enabled: u64,
    running: u64,
}

impl Counter {
    /// Return a counter of an event that isn't open yet.
    pub fn closed(event: Event) -> Counter {
        Counter { event, fd: -1 }
    }

    /// Return the counter, open and counting whatever runs on this CPU. The message of a refusal says what to do.
    pub fn open(self, cpu: u32) -> Result<Counter, String> {
        let attributes = Attributes {
            kind: self.event.kind,
            size: SIZE,
            config: self.event.config,
            sample_period: 0,
            sample_type: 0,
            read_format: WITH_TIMES,
            flags: PINNED,
            wakeup_events: 0,
            breakpoint_type: 0,
            breakpoint_address: 0,
        };
        let (every_process, no_group): (libc::pid_t, libc::c_int) = (-1, -1);
        // SAFETY: `attributes` is readable for the size that it says.
        let opened = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &attributes, every_process, cpu, no_group, CLOSE_ON_EXEC)
        };
        let fd = fd::owned("perf_event_open()", opened as RawFd).map_err(refusal)?;
        Ok(Counter { fd: fd.into_raw_fd(), ..self })
    }

    pub fn close(self) {
        // SAFETY: no pointers; nobody reads it any more.
        unsafe { libc::close(self.fd) };
    }

    /// Return the count; 0 where it can't be read, which [`Counter::fault`] then explains.
    #[inline(always)]
    pub fn count(self) -> u64 {
        self.read().map_or(0, |reading| reading.value)
    }

    /// Return why the counts since it was opened are worthless; None if they aren't. A counter that was lost, or that
    /// shared its place, is never right again.
    pub fn fault(self) -> Option<String> {
        match self.read() {
            Err(Failure::Short { .. }) => {
                Some("the cycle counter was lost: another pinned event took its place in the PMU".into())
            }
            Err(failure) => Some(format!("the cycle counter cannot be read: {failure}")),
            Ok(Reading { enabled, running, .. }) if running < enabled => Some(format!(
                "the cycle counter counted in {running} of {enabled} ns: other events took its place in the PMU"
            )),
            Ok(_) => None,
        }
    }

    #[inline(always)]
    fn read(self) -> Result<Reading, Failure> {
        let mut reading = Reading::default();
        let size = size_of::<Reading>();
        // SAFETY: `reading` is writable for its size, and any bytes are one.
        let got = unsafe { libc::read(self.fd, (&raw mut reading).cast(), size) };
        if got == size as isize { Ok(reading) } else { Err(Failure::transfer("read(counter)", size, got)) }
    }
}

/// Return why there is no counter, and what to do about it.
fn refusal(failure: Failure) -> String {
    let action = match failure {
        Failure::Errno { errno: libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP, .. } => {
            "this kernel drives no PMU of this processor: take the lane wall; or a kernel with CONFIG_CPU_SUP_INTEL or \
             CONFIG_CPU_SUP_AMD, as the processor needs, and in a virtual machine a virtual PMU (QEMU under KVM: \
             -cpu host,pmu=on)"
        }
        Failure::Errno { errno: libc::ENOSYS, .. } => "take a kernel with CONFIG_PERF_EVENTS, or the lane wall",
        Failure::Errno { errno: libc::EACCES | libc::EPERM, .. } => {
            "be root, or set kernel.perf_event_paranoid to 0 or less"
        }
        _ => "take the lane wall",
    };
    format!("lane pmu: {failure}: {action}")
}

/// What tests count instead of cycles.
#[cfg(test)]
pub mod specimen {
    use super::*;

    /// PERF_COUNT_SW_CPU_CLOCK of PERF_TYPE_SOFTWARE: nanoseconds, on a processor without a PMU, too.
    const NANOSECONDS: Event = Event { kind: 1, config: 0 };

    pub fn closed() -> Counter {
        Counter::closed(NANOSECONDS)
    }

    /// Return whether this user may count on a CPU.
    pub fn may_count() -> bool {
        match closed().open(0) {
            Ok(counter) => counter.close(),
            Err(reason) => {
                assert!(reason.contains("be root, or set"), "{reason}");
                return false;
            }
        }
        true
    }

    /// Return a counter that reads these bytes.
    pub fn that_reads(bytes: &[u8]) -> Counter {
        let (read, write) = fd::pipe().unwrap();
        fd::write_all("write(pipe)", write.into_raw_fd(), bytes).unwrap();
        Counter { fd: read.into_raw_fd(), ..closed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::{Duration, Instant};

    fn reading(value: u64, enabled: u64, running: u64) -> Vec<u8> {
        [value, enabled, running].iter().flat_map(|number| number.to_ne_bytes()).collect()
    }

    #[test]
    fn a_counter_counts_what_runs_on_its_cpu_and_has_no_fault() {
        if !specimen::may_count() {
            return;
        }
        let counter = specimen::closed().open(0).unwrap();
        let (before, start) = (counter.count(), Instant::now());
        std::thread::sleep(Duration::from_millis(20));
        let (counted, passed) = (counter.count() - before, start.elapsed().as_nanos() as u64);
        assert!((10_000_000..=passed).contains(&counted), "{counted} in {passed} ns");
        assert_eq!(counter.fault(), None);
        counter.close();
    }

    #[test]
    fn a_counter_that_was_not_opened_counts_nothing_and_says_so() {
        let counter = specimen::closed();
        assert_eq!(counter.count(), 0);
        assert_eq!(counter.fault().unwrap(), "the cycle counter cannot be read: read(counter): EBADF");
    }

    #[test]
    fn a_counter_in_the_state_of_an_error_is_lost() {
        let counter = Counter { fd: File::open("/dev/null").unwrap().into_raw_fd(), ..specimen::closed() };
        assert_eq!(counter.count(), 0);
        assert!(counter.fault().unwrap().starts_with("the cycle counter was lost"));
    }

    #[test]
    fn a_counter_that_shared_its_place_says_for_how_long_it_counted() {
        assert_eq!(specimen::that_reads(&reading(7, 100, 100)).fault(), None);
        let fault = specimen::that_reads(&reading(7, 100, 99)).fault().unwrap();
        assert!(fault.starts_with("the cycle counter counted in 99 of 100 ns"), "{fault}");
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        for (errno, expected) in [
            (libc::ENOENT, "take the lane wall"),
            (libc::ENOSYS, "CONFIG_PERF_EVENTS"),
            (libc::EACCES, "kernel.perf_event_paranoid"),
            (libc::EINVAL, "EINVAL: take the lane wall"),
        ] {
            let message = refusal(Failure::Errno { call: "perf_event_open()", errno });
            assert!(message.starts_with("lane pmu: perf_event_open(): E") && message.contains(expected), "{message}");
        }
    }
}
