//! What ends a benchmark that hangs.

use crate::measure::clock::Clock;

/// Return the seconds after which an iteration hangs. Those of the model lane are virtual, 31 million instructions each,
/// and no iteration has as many. A guest in which everybody waits spins until then, which takes its host up to two
/// seconds for each: less, in all, than the silence after which the host ends a boot.
pub fn too_long(clock: Clock) -> libc::c_uint {
    match clock {
        Clock::Model { .. } => 20,
        Clock::Wall | Clock::Cycles(_) => 60,
    }
}

/// End the benchmark's process if it isn't called again in time.
pub fn still_alive(clock: Clock) {
    // SAFETY: no pointers; the default action of SIGALRM is to end the process.
    unsafe { libc::alarm(too_long(clock)) };
}
