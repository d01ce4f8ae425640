//! Time, processor time and page faults of a computation.

use crate::large_pages::LargePages;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What one computation took, all threads of the process included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Nanoseconds of CLOCK_MONOTONIC, which is the same in all processes.
    pub start: i64,
    pub end: i64,
    /// Seconds of the processor.
    pub user: f64,
    pub system: f64,
    pub faults: Faults,
    /// The large pages of the whole system; None where the kernel doesn't count them, or they were not requested.
    pub large_pages: Option<LargePages>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Faults {
    /// Served without input or output.
    pub minor: u64,
    pub major: u64,
}

impl Timing {
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos((self.end - self.start).unsigned_abs())
    }

    /// Return the seconds; 0 where the clock's steps are longer than the computation.
    pub fn seconds(&self) -> f64 {
        (self.end - self.start) as f64 / 1e9
    }
}

impl std::ops::Add for Faults {
    type Output = Faults;

    fn add(self, other: Faults) -> Faults {
        Faults { minor: self.minor + other.minor, major: self.major + other.major }
    }
}

impl std::iter::Sum for Faults {
    fn sum<I: Iterator<Item = Faults>>(items: I) -> Faults {
        items.fold(Faults::default(), |sum, faults| sum + faults)
    }
}

pub fn time_work<T>(work: impl FnOnce() -> T) -> (T, Timing) {
    let first = usage();
    let start = read_clock();
    let result = work();
    let end = read_clock();
    let last = usage();
    let faults = Faults {
        minor: (last.minor_page_faults() - first.minor_page_faults()) as u64,
        major: (last.major_page_faults() - first.major_page_faults()) as u64,
    };
    let user = seconds(last.user_time()) - seconds(first.user_time());
    let system = seconds(last.system_time()) - seconds(first.system_time());
    (result, Timing { start, end, user, system, faults, large_pages: None })
}

/// Time the part by which a load is measured, and count the large pages that it was given. The emulated PMU counts it
/// for the region that was announced.
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, Timing) {
    let first = LargePages::read();
    let (result, timing) = time_work(|| {
        kdyno_marker::open();
        let result = work();
        kdyno_marker::close();
        result
    });
    let large_pages = LargePages::read().zip(first).map(|(last, first)| last.subtract(first));
    (result, Timing { large_pages, ..timing })
}

/// Return the nanoseconds of CLOCK_MONOTONIC.
pub fn read_clock() -> i64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock").num_nanoseconds()
}

fn usage() -> Usage {
    getrusage(UsageWho::RUSAGE_SELF).expect("getrusage of oneself can't fail")
}

fn seconds(time: nix::sys::time::TimeVal) -> f64 {
    time.num_microseconds() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::area::{Advice, Area};

    #[test]
    fn touching_new_pages_takes_time_and_faults() {
        let mut area: Area<u8> = Area::new(64 << 12, Advice::NoHugePages).unwrap();
        let ((), timing) = time_work(|| area.iter_mut().step_by(4096).for_each(|byte| *byte = 1));
        assert!(timing.seconds() > 0.0);
        assert!(timing.faults.minor > 0);
    }
}
