//! When the kernel's timer ticks, so that an iteration of the model lane can begin soon after a tick.
//!
//! A tick costs thousands of instructions, and it runs what the measured code left for later (RCU callbacks). An
//! iteration that begins after a tick and is shorter than the time between two has none of it. An idle kernel of this
//! lane spins, so sleeping until then costs the host at least what other work of that long does.

use std::sync::OnceLock;

/// Nanoseconds before the next tick at which we wake up to see it.
const EARLY: u64 = 300_000;

/// Nanoseconds after a tick within which an iteration begins. The moment is drawn anew each time from the kernel's
/// random numbers, and so from the seed: what the scheduler makes of it is then sampled, and not the same in all boots by
/// an accident of ours.
const LATER: u64 = 200_000;

/// Readings of the clock without a tick after which there is none: seconds' worth.
const PATIENCE: u32 = 10_000_000;

/// Times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks {
    last: u64,
    period: u64,
}

impl Ticks {
    /// Wait, busily, for the next tick; once in a process and those that it forks. None on a kernel where no tick is
    /// seen.
    pub fn find() -> Option<Ticks> {
        static FOUND: OnceLock<Option<Ticks>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let mut period = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `period` is writable. The resolution of this clock is the time between two ticks.
            let failed = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &mut period) } != 0;
            if failed || !see_one() {
                return None;
            }
            Some(Ticks { last: now(libc::CLOCK_MONOTONIC), period: nanoseconds(&period).max(1) })
        })
    }

    /// Return if there is time for an iteration of `needed` nanoseconds before the next tick; else sleep until shortly
    /// before a tick, wait for it, and return. Looks for each tick that it waits for: a kernel that begins to use
    /// high-resolution timers, a second after it started, moves them.
    pub fn make_room(&mut self, needed: u64) {
        if needed + EARLY < (self.last + self.period).saturating_sub(now(libc::CLOCK_MONOTONIC)) {
            return;
        }
        let wake = self.wake(now(libc::CLOCK_MONOTONIC));
        let time = libc::timespec {
            tv_sec: (wake / 1_000_000_000) as libc::time_t,
            tv_nsec: (wake % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: `time` is a timespec; null for "the rest is not asked for". Failure costs only precision.
        unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut());
        }
        see_one();
        self.last = now(libc::CLOCK_MONOTONIC);
        let start = self.last + random() % LATER;
        while now(libc::CLOCK_MONOTONIC) < start {}
    }

    /// Return when to wake up, if it is `now`: before the next tick that is not too near.
    fn wake(&self, now: u64) -> u64 {
        let early = EARLY.min(self.period / 2);
        let passed = (now + early).saturating_sub(self.last) / self.period;
        self.last + (passed + 1) * self.period - early
    }
}

/// Wait for a tick: CLOCK_MONOTONIC_COARSE only moves then. False if none comes.
fn see_one() -> bool {
    let before = now(libc::CLOCK_MONOTONIC_COARSE);
    (0..PATIENCE).any(|_| now(libc::CLOCK_MONOTONIC_COARSE) != before)
}

fn now(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable; these clocks are in every Linux since 2.6.32.
    unsafe { libc::clock_gettime(clock, &mut time) };
    nanoseconds(&time)
}

fn nanoseconds(time: &libc::timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Return a random number, or 0 from a kernel that has no random numbers to give yet.
fn random() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: `bytes` is writable for its length.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) };
    u64::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_wake_before_the_next_tick_or_the_one_after_if_it_is_too_near() {
        let ticks = Ticks { last: 7_000_000, period: 10_000_000 };
        for now in [7_000_000, 7_000_001, 16_699_999] {
            assert_eq!(ticks.wake(now), 17_000_000 - EARLY);
        }
        for now in [16_700_000, 17_000_000, 26_000_000] {
            assert_eq!(ticks.wake(now), 27_000_000 - EARLY);
        }
    }

    #[test]
    fn an_iteration_without_room_begins_after_a_tick_of_this_host_and_one_with_room_at_once() {
        let mut ticks = Ticks::find().unwrap();
        assert!((500_000..=10_000_000).contains(&ticks.period), "{ticks:?}");
        let before = ticks;
        ticks.make_room(ticks.period);
        assert!(ticks.last > before.last);
        let in_the_future = Ticks { last: now(libc::CLOCK_MONOTONIC) + 1_000_000_000, ..ticks };
        ticks = in_the_future;
        ticks.make_room(1_000_000);
        assert_eq!(ticks, in_the_future);
    }
}
