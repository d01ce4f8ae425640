//! What ends a benchmark that hangs.

/// An iteration that takes longer than this, in seconds, hangs.
pub const TOO_LONG: libc::c_uint = 60;

/// End the benchmark's process if it isn't called again in time. In the model lane a deadlock is found at once: when
/// everybody sleeps, the virtual clock jumps to the alarm.
pub fn still_alive() {
    // SAFETY: no pointers; the default action of SIGALRM is to end the process.
    unsafe { libc::alarm(TOO_LONG) };
}
