//! Waiting for processes, as PID 1 or as anybody.

use std::fmt;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    Exit(i32),
    Signal(i32),
}

impl Death {
    pub fn from_status(status: i32) -> Death {
        if libc::WIFSIGNALED(status) {
            Death::Signal(libc::WTERMSIG(status))
        } else {
            Death::Exit(libc::WEXITSTATUS(status))
        }
    }

    /// Return the status as one number, as a shell reports it.
    pub fn code(self) -> u8 {
        match self {
            Death::Exit(status) => status as u8,
            Death::Signal(signal) => 128 + signal as u8,
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Death::Exit(status) => write!(f, "exited with status {status}"),
            Death::Signal(signal) => write!(f, "killed by signal {signal}"),
        }
    }
}

/// Wait for the leader of a process group, then kill and reap what it left behind.
pub fn wait_for_group(leader: libc::pid_t) -> Death {
    let death = wait_for(leader);
    // SAFETY: no pointers. The group is the benchmark's own; as PID 1 we inherit its members and reap them.
    unsafe { libc::kill(-leader, libc::SIGKILL) };
    if std::process::id() == 1 {
        while reap(0).is_some() {}
    }
    death
}

/// Wait for one child; PID 1 reaps any other on the way.
pub fn wait_for(child: libc::pid_t) -> Death {
    let any = if std::process::id() == 1 { -1 } else { child };
    loop {
        match reap_one_of(any, 0) {
            Some((pid, death)) if pid == child => return death,
            Some(_) => {}
            None => return Death::Exit(-1),
        }
    }
}

/// Reap any child: `flags` 0 waits for it, WNOHANG doesn't. None when there is none.
pub fn reap(flags: libc::c_int) -> Option<(libc::pid_t, Death)> {
    reap_one_of(-1, flags)
}

fn reap_one_of(children: libc::pid_t, flags: libc::c_int) -> Option<(libc::pid_t, Death)> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is writable.
        let pid = unsafe { libc::waitpid(children, &mut status, flags) };
        if pid < 0 && crate::sys::errno::last() == libc::EINTR {
            continue;
        }
        return (pid > 0).then(|| (pid, Death::from_status(status)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_is_said_as_a_shell_says_it() {
        assert_eq!(Death::from_status(7).code(), 135);
        assert_eq!(Death::from_status(3 << 8).code(), 3);
        assert_eq!(Death::from_status(7).to_string(), "killed by signal 7");
    }
}
