//! A shell on the console, for a person.

use crate::processes;
use crate::sys::peer::die_with;
use crate::sys::{Failure, check, file};
use std::ffi::CString;
use std::fs;
use std::os::fd::AsRawFd;
use std::ptr::null;

/// Run /bin/sh on the console until it ends.
pub fn run() -> Result<(), String> {
    // SAFETY: one thread, so the child may go on.
    let pid = check("fork()", unsafe { libc::fork() }).map_err(|failure| failure.to_string())?;
    if pid == 0 {
        let failure = become_shell();
        super::console::say(&format!("no shell: {failure}"));
        // SAFETY: no pointers.
        unsafe { libc::_exit(127) };
    }
    processes::wait_for(pid);
    Ok(())
}

/// Replace this process by a shell; only returns when something failed.
fn become_shell() -> Failure {
    die_with(1);
    match take_console() {
        Err(failure) => failure,
        Ok(()) => {
            let arguments = [c"-sh".as_ptr(), null()];
            let environment =
                [c"PATH=/usr/sbin:/usr/bin:/sbin:/bin".as_ptr(), c"HOME=/".as_ptr(), c"TERM=vt100".as_ptr(), null()];
            // SAFETY: C strings and null-ended arrays. The signal mask and handlers are the ones a shell expects.
            unsafe {
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                libc::execve(c"/bin/sh".as_ptr(), arguments.as_ptr(), environment.as_ptr());
            }
            Failure::last("execve(/bin/sh)")
        }
    }
}

/// Start a session whose controlling terminal is the console, for job control and Ctrl-C.
fn take_console() -> Result<(), Failure> {
    // SAFETY: no pointers.
    check("setsid()", unsafe { libc::setsid() })?;
    let console = file::open("open(console)", &console_path(), libc::O_RDWR)?;
    // SAFETY: no pointers; the descriptor is open.
    unsafe {
        // A console that can't be a controlling terminal still makes a shell, without job control.
        libc::ioctl(console.as_raw_fd(), libc::TIOCSCTTY, 0);
        for standard in 0..3 {
            check("dup2()", libc::dup2(console.as_raw_fd(), standard))?;
        }
    }
    Ok(())
}

/// Return the path of the terminal behind /dev/console, which itself can't be a controlling terminal.
fn console_path() -> CString {
    let active = fs::read_to_string("/sys/class/tty/console/active").unwrap_or_default();
    let name = active.split_whitespace().last().unwrap_or("console");
    CString::new(format!("/dev/{name}")).expect("sysfs holds no NUL")
}
