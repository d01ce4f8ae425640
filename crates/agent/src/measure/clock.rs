//! The clocks of the lanes.
//!
//! - wall: CLOCK_MONOTONIC_RAW, in nanoseconds: not slewed by NTP while we measure.
//! - model: guest instructions. Under QEMU's `-icount shift=S` the virtual clock is (instructions executed) << S
//!   nanoseconds and the TSC runs at 1 GHz of it, so a difference of two RDTSCs, shifted right by S, is the number of
//!   instructions between them. QEMU ends a translation block at RDTSC to make the count exact, so no fence is needed.
//!   Time in which everybody sleeps counts too: an idle kernel spins. A benchmark that never sleeps is exact to
//!   the instruction.
//! - pmu: cycles of the core, user and kernel, as the processor's own PMU counts them on the CPU that the benchmark is
//!   bound to. Reading it is a system call.

use super::counter::{CYCLES, Counter};
use crate::sys::cpu::{self, Cpus};
use kdyno_proto::Lane;
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
    Model {
        shift: u8,
    },
    /// A process opens the counter when it is bound to a CPU.
    Cycles(Counter),
}

impl Clock {
    /// Return the clock of a lane. `shift` is that of QEMU's `-icount`; None in a lane that has none.
    pub fn of(lane: Lane, shift: Option<u8>) -> Clock {
        match shift {
            Some(shift) => Clock::Model { shift },
            None if lane.uses_core_pmu() => Clock::Cycles(Counter::closed(CYCLES)),
            None => Clock::Wall,
        }
    }

    /// Return why nothing that was read so far is a measurement; None if all is well.
    pub fn fault(self) -> Option<String> {
        match self {
            Clock::Cycles(counter) => counter.fault(),
            Clock::Wall | Clock::Model { .. } => None,
        }
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
            Clock::Cycles(counter) => counter.count(),
        }
    }

    /// Return the nanoseconds, instructions or cycles between two readings.
    #[inline(always)]
    pub fn elapsed(self, start: u64, end: u64) -> u64 {
        match self {
            Clock::Wall | Clock::Cycles(_) => end.saturating_sub(start),
            Clock::Model { shift } => end.wrapping_sub(start) >> shift,
        }
    }

    /// Refuse a clock that can't be trusted, before anything is measured with it.
    pub fn prove(self) -> Result<(), String> {
        match self {
            Clock::Wall => self.prove_fine(),
            Clock::Model { .. } => self.prove_exact(),
            Clock::Cycles(counter) => prove_cycles(counter),
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
        let [once, twice] = [ROUNDS, 2 * ROUNDS].map(|rounds| self.shortest(|| count_down(rounds)));
        match twice.checked_sub(once) {
            Some(extra) if extra == 2 * ROUNDS => Ok(()),
            _ => Err(format!(
                "lane model: the clock does not count instructions: {} more cost {}: start QEMU with -accel tcg -icount shift=S and say the same S in the job",
                2 * ROUNDS,
                twice as i128 - once as i128,
            )),
        }
    }

    /// Refuse a counter that doesn't count cycles of the core: N dependent additions more must cost about N.
    fn prove_additions(self) -> Result<(), String> {
        const ADDITIONS: u64 = 1_000_000;
        let [once, twice] = [ADDITIONS, 2 * ADDITIONS].map(|additions| self.shortest(|| add_up(additions)));
        if let Some(fault) = self.fault() {
            return Err(format!("lane pmu: {fault}: set kernel.nmi_watchdog to 0, or take the lane wall"));
        }
        let extra = twice.saturating_sub(once);
        if (ADDITIONS * 9 / 10..=ADDITIONS * 11 / 10).contains(&extra) {
            return Ok(());
        }
        Err(format!(
            "lane pmu: the counter does not count cycles of the core: {ADDITIONS} additions more, of one cycle each, cost {extra}: take the lane wall"
        ))
    }

    /// Return the least of several readings of what `body` costs: an interrupt can only add.
    fn shortest(self, body: impl Fn()) -> u64 {
        let once = || {
            let start = self.now();
            body();
            self.elapsed(start, self.now())
        };
        (0..5).map(|_| once()).min().expect("five is more than none")
    }
}

/// Prove a counter on the CPU that this process runs on, which may run on all others afterwards as before.
fn prove_cycles(counter: Counter) -> Result<(), String> {
    let as_before = Cpus::allowed().map_err(|failure| failure.to_string())?;
    let cpu = cpu::stay().map_err(|failure| failure.to_string())?;
    let proof = counter.open(cpu).and_then(|counter| {
        let proof = Clock::Cycles(counter).prove_additions();
        counter.close();
        proof
    });
    as_before.bind().map_err(|failure| failure.to_string())?;
    proof
}

/// Execute twice as many instructions.
#[inline(always)]
fn count_down(rounds: u64) {
    // SAFETY: counts a register down to 0, touches nothing else.
    unsafe { asm!("2: dec {0}", "jnz 2b", inout(reg) rounds => _, options(nomem, nostack)) };
}

/// Execute so many additions, a multiple of 100, each of which needs the result of the one before: a processor takes one
/// cycle for each (Fog, "Instruction tables": latency of ADD r,r). Not of a constant, which Intel's cores since Golden
/// Cove add without a cycle of its own.
#[inline(always)]
fn add_up(additions: u64) {
    // SAFETY: counts a register down to 0 and changes another, touches nothing else.
    unsafe {
        asm!(
            "2:",
            ".rept 100",
            "add {sum}, {one}",
            ".endr",
            "dec {rounds}",
            "jnz 2b",
            rounds = inout(reg) additions / 100 => _,
            sum = inout(reg) 0_u64 => _,
            one = in(reg) 1_u64,
            options(nomem, nostack)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::counter::specimen;
    use super::*;

    #[test]
    fn the_wall_clock_of_this_host_is_fine_enough() {
        assert_eq!(Clock::Wall.prove(), Ok(()));
    }

    #[test]
    fn nanoseconds_are_not_taken_for_cycles() {
        if specimen::may_count() {
            let error = Clock::Cycles(specimen::closed()).prove().unwrap_err();
            assert!(error.contains("does not count cycles of the core: 1000000 additions more"), "{error}");
        }
    }

    #[test]
    fn the_cycles_of_this_host_are_proven_or_refused_with_an_alternative() {
        let lane = Lane::all().find(|lane| lane.uses_core_pmu()).unwrap();
        if let Err(error) = Clock::of(lane, None).prove() {
            assert!(error.starts_with("lane pmu: perf_event_open(): E"), "{error}");
        }
    }

    #[test]
    fn a_proof_leaves_the_process_all_its_cpus() {
        let count = || std::thread::available_parallelism().unwrap();
        let before = count();
        let _ = Clock::Cycles(specimen::closed()).prove();
        assert_eq!(count(), before);
    }

    #[test]
    fn the_time_stamp_counter_of_this_host_is_not_taken_for_an_instruction_count() {
        let error = Clock::Model { shift: 5 }.prove().unwrap_err();
        assert!(error.contains("-icount shift=S"), "{error}");
    }
}
