//! The clocks of the two lanes.
//!
//! - wall: CLOCK_MONOTONIC_RAW, in nanoseconds: not slewed by NTP while we measure.
//! - model: guest instructions. Under QEMU's `-icount shift=S` the virtual clock is (instructions executed) << S
//!   nanoseconds and the TSC runs at 1 GHz of it, so a difference of two RDTSCs, shifted right by S, is the number of
//!   instructions between them. QEMU ends a translation block at RDTSC to make the count exact, so no fence is needed.
//!   Time in which everybody sleeps counts too: an idle kernel spins. A benchmark that never sleeps is exact to
//!   the instruction.

use std::arch::asm;
use std::arch::x86_64::_rdtsc;

/// Return the frequency of the time stamp counter in kHz, by CLOCK_MONOTONIC_RAW over a tenth of a second.
pub fn tsc_khz() -> u64 {
    let start = (Clock::Wall.now(), Clock::Model { shift: 0 }.now());
    std::thread::sleep(std::time::Duration::from_millis(100));
    let end = (Clock::Wall.now(), Clock::Model { shift: 0 }.now());
    let (nanoseconds, ticks) = (Clock::Wall.elapsed(start.0, end.0), end.1.wrapping_sub(start.1));
    (ticks as u128 * 1_000_000 / nanoseconds.max(1) as u128) as u64
}

#[derive(Debug, Clone, Copy)]
pub enum Clock {
    Wall,
    Model { shift: u8 },
}

impl Clock {
    /// Return the clock of a guest under QEMU's `-icount` with this shift; without one, a clock of time.
    pub fn with_shift(shift: Option<u8>) -> Clock {
        shift.map_or(Clock::Wall, |shift| Clock::Model { shift })
    }

    /// Return a reading; only the difference of two means something, see [`Clock::elapsed`].
    #[inline(always)]
    pub fn now(self) -> u64 {
        match self {
            Clock::Wall => {
                let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
                // SAFETY: `time` is writable; this clock exists since Linux 2.6.28.
                unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &mut time) };
                time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
            }
            // SAFETY: every x86-64 has RDTSC, and Linux allows it unless a process forbade itself.
            Clock::Model { .. } => unsafe { _rdtsc() },
        }
    }

    /// Return the nanoseconds or instructions between two readings.
    #[inline(always)]
    pub fn elapsed(self, start: u64, end: u64) -> u64 {
        match self {
            Clock::Wall => end.saturating_sub(start),
            Clock::Model { shift } => end.wrapping_sub(start) >> shift,
        }
    }

    /// Refuse a clock that can't be trusted, before anything is measured with it.
    pub fn prove(self) -> Result<(), String> {
        match self {
            Clock::Wall => self.prove_fine(),
            Clock::Model { .. } => self.prove_exact(),
        }
    }

    /// Refuse a wall clock that moves in large steps, as in a guest that has no better clocksource than jiffies.
    fn prove_fine(self) -> Result<(), String> {
        // Jiffies move by 1 ms or more. Where the processor is itself emulated, as for KVM on TCG's SVM, only reading a
        // fine clock takes tens of microseconds.
        const LARGEST_STEP: u64 = 100_000;
        let step = (0..3).map(|_| self.step()).min().expect("three is more than none");
        if (1..=LARGEST_STEP).contains(&step) {
            return Ok(());
        }
        Err(format!(
            "lane wall: the clock moves in steps of {step} ns, more than {LARGEST_STEP}: see /sys/devices/system/clocksource/clocksource0/current_clocksource; a guest needs a stable TSC or kvm-clock"
        ))
    }

    /// Return the nanoseconds from one value of the clock to the next; 0 when it stands still.
    fn step(self) -> u64 {
        const PATIENCE: u32 = 10_000_000;
        let start = self.now();
        (0..PATIENCE).map(|_| self.elapsed(start, self.now())).find(|&step| step > 0).unwrap_or(0)
    }

    /// Refuse a model lane whose clock doesn't count instructions.
    ///
    /// A loop of two instructions is run N and 2N times; on an exact clock the difference is 2N, to the instruction. An
    /// interrupt can only add, so the smallest of several tries is taken.
    fn prove_exact(self) -> Result<(), String> {
        const ROUNDS: u64 = 1_000;
        let once = self.shortest(ROUNDS);
        let twice = self.shortest(2 * ROUNDS);
        match twice.checked_sub(once) {
            Some(extra) if extra == 2 * ROUNDS => Ok(()),
            _ => Err(format!(
                "lane model: the clock does not count instructions: {} more cost {}: start QEMU with -accel tcg -icount shift=S and say the same S in the job",
                2 * ROUNDS,
                twice as i128 - once as i128,
            )),
        }
    }

    fn shortest(self, rounds: u64) -> u64 {
        let once = || {
            let start = self.now();
            // SAFETY: counts a register down to 0, touches nothing else.
            unsafe { asm!("2: dec {0}", "jnz 2b", inout(reg) rounds => _, options(nomem, nostack)) };
            self.elapsed(start, self.now())
        };
        (0..5).map(|_| once()).min().expect("five is more than none")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_of_this_host_is_fine_enough() {
        assert_eq!(Clock::Wall.prove(), Ok(()));
    }

    #[test]
    fn the_time_stamp_counter_of_this_host_is_not_taken_for_an_instruction_count() {
        let error = Clock::Model { shift: 5 }.prove().unwrap_err();
        assert!(error.contains("-icount shift=S"), "{error}");
    }
}
