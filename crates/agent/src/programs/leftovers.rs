//! Processes that a program left behind: they get a moment to end by themselves, and then no choice.

use crate::processes;
use crate::sys::failure::{Failure, check};
use crate::sys::peer::die_with;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A daemon that was told to stop may need this long.
const GRACE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// Make orphans children of the agent from here on, as those of a guest are already.
pub fn adopt() {
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Let the caller go on in a child, in the same process group. This process leaves the group, so that it outlives
/// whoever kills that; when the child has ended, however it ended, it kills all that is left and ends as the child did.
pub fn outlive() -> Result<(), Failure> {
    adopt();
    // SAFETY: no pointers. Before there is a child: nothing may be left when the group is killed just now.
    let (group, left) = unsafe { (libc::getpgrp(), libc::setpgid(0, 0)) };
    check("setpgid()", left)?;
    // SAFETY: the agent has one thread, so the child may go on as if nothing happened.
    let (agent, pid) = unsafe { (libc::getpid(), libc::fork()) };
    if check("fork()", pid)? == 0 {
        die_with(agent);
        // SAFETY: no pointers. A group that is gone by now was killed.
        check("setpgid()", unsafe { libc::setpgid(0, group) })?;
        return Ok(());
    }
    while let Some((child, death)) = processes::reap(0) {
        if child == pid {
            kill();
            std::process::exit(death.code().into());
        }
    }
    unreachable!("it waited for a child that it has")
}

/// Return when no child is left, with the number of those that were killed.
pub fn end() -> u32 {
    let begin = Instant::now();
    while begin.elapsed() < GRACE {
        reap_all();
        if children().is_empty() {
            return 0;
        }
        sleep(PAUSE);
    }
    kill()
}

/// Kill the children, and those that become children by that, until none is left that may be killed; return how many it
/// was.
fn kill() -> u32 {
    let mut killed = 0;
    loop {
        let before = killed;
        for child in children() {
            // SAFETY: no pointers. The process is a child that wasn't reaped, so its number is nobody else's.
            if unsafe { libc::kill(child, libc::SIGKILL) } == 0 {
                processes::wait_for(child);
                killed += 1;
            }
        }
        if killed == before {
            return killed;
        }
    }
}

fn reap_all() {
    while processes::reap(libc::WNOHANG).is_some() {}
}

/// Return the processes whose parent is this one; none where /proc isn't there.
fn children() -> Vec<libc::pid_t> {
    let own = std::process::id();
    let listing = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = listing.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.filter(|pid| parent_of(*pid) == Some(own)).collect()
}

/// Return the parent, the fourth field of /proc/PID/stat; the second one is a name in parentheses,
/// with any character in it.
fn parent_of(pid: libc::pid_t) -> Option<u32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.iter().rposition(|byte| *byte == b')')?;
    std::str::from_utf8(&stat[after_name + 1..]).ok()?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_a_process_is_read_from_its_stat() {
        // SAFETY: no pointers.
        assert_eq!(parent_of(std::process::id() as libc::pid_t), Some(unsafe { libc::getppid() } as u32));
        assert_eq!(parent_of(0), None);
    }
}
