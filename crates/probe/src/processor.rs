//! One processor, its time-stamp counter, and how many of the counter's ticks a cycle of the processor takes now.

use crate::opaque::opaque;
use std::arch::asm;
use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
use std::mem::{size_of, zeroed};

/// Stay on the CPU that this runs on now.
pub fn pin() -> Result<(), String> {
    // SAFETY: plain system calls with a set of our own.
    let refused = unsafe {
        let cpu = libc::sched_getcpu();
        let mut set: libc::cpu_set_t = zeroed();
        libc::CPU_SET(usize::try_from(cpu).unwrap_or(0), &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if refused == 0 { Ok(()) } else { Err(format!("can't stay on one CPU: {}", std::io::Error::last_os_error())) }
}

/// Return the counter, after everything before it is done and before anything after it begins.
#[inline(always)]
pub fn start() -> u64 {
    // SAFETY: every x86-64 processor has these.
    unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    }
}

/// Return the counter, after everything before it is done.
#[inline(always)]
pub fn stop() -> u64 {
    let mut processor = 0;
    // SAFETY: every x86-64 processor that kdyno runs on has rdtscp.
    unsafe {
        let now = __rdtscp(&mut processor);
        _mm_lfence();
        now
    }
}

/// Turns of a loop of additions: 10 cycles each.
const TURNS: u64 = 300;
const ATTEMPTS: u32 = 4;

/// Return the ticks per cycle, now: a chain of additions takes a cycle for each, whatever else shares the core. The
/// counter's frequency is fixed, the processor's is not. The shortest of some attempts: one in a few is interrupted.
pub fn beat() -> f64 {
    (0..ATTEMPTS).map(|_| one_beat()).fold(f64::MAX, f64::min)
}

fn one_beat() -> f64 {
    let start = start();
    let mut sum = opaque(1);
    for turn in 0..TURNS {
        // SAFETY: additions.
        unsafe {
            asm!(
                "add {0}, {1}", "add {0}, {1}", "add {0}, {1}", "add {0}, {1}", "add {0}, {1}",
                "add {0}, {1}", "add {0}, {1}", "add {0}, {1}", "add {0}, {1}", "add {0}, {1}",
                inout(reg) sum, in(reg) turn, options(nomem, nostack)
            );
        }
    }
    opaque(sum);
    (stop() - start) as f64 / (10 * TURNS) as f64
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_cycle_takes_some_ticks() {
        let beat = (0..100).map(|_| super::beat()).fold(f64::MAX, f64::min);
        assert!((0.1..20.0).contains(&beat), "{beat}");
    }
}
