//! The way out, and what is said on it.

use std::io::Write;

/// Write one line on the console. Standard error is /dev/console, which the kernel opened for us.
pub fn say(message: &str) {
    let message = message.replace('\n', " ");
    let _ = writeln!(std::io::stderr(), "kdyno-agent: {message}");
}

/// Restart the machine.
pub fn restart() -> ! {
    // SAFETY: no pointers. The serial driver may still hold what was said last. If the kernel doesn't restart, PID 1
    // must still not return, or the kernel panics over it.
    unsafe {
        libc::tcdrain(libc::STDERR_FILENO);
        libc::reboot(libc::RB_AUTOBOOT);
        loop {
            libc::pause();
        }
    }
}
