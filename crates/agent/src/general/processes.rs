//! Processes: families of several generations that end in many ways; and the descriptors, sessions and limits that they
//! inherit.

use super::child::Child;
use super::mix::Mix;
use crate::sys::{Failure, Stop, check, fd, file};
use std::os::fd::AsRawFd;

const CHILDREN: usize = 6;

pub fn round(mix: &mut Mix) -> Result<(), Stop> {
    let (read, write) = fd::pipe()?;
    let mut children = Vec::new();
    for _ in 0..CHILDREN {
        let (grandchildren, yields) = (mix.below(2), mix.below(6));
        let write = write.as_raw_fd();
        children.push(Child::spawn(move || {
            settle()?;
            for _ in 0..yields {
                // SAFETY: no pointers.
                unsafe { libc::sched_yield() };
            }
            for _ in 0..grandchildren {
                let child = Child::spawn(|| fd::write_all("write(pipe)", write, b"g"));
                child.and_then(Child::wait).map_err(|_| Failure::last("fork()"))?;
            }
            fd::write_all("write(pipe)", write, b"c")
        })?);
    }
    let mut byte = [0];
    fd::read_exact("read(pipe)", read.as_raw_fd(), &mut byte)?;
    // One is looked at without being reaped, then all are waited for in another order than they were made.
    // SAFETY: all bits 0 is a siginfo_t.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let how = libc::WEXITED | libc::WNOWAIT;
        check("waitid()", libc::waitid(libc::P_PID, children[0].id() as libc::id_t, &mut info, how))?;
    }
    mix.shuffle(&mut children);
    children.into_iter().try_for_each(Child::wait)
}

/// Do what a program does when it starts.
fn settle() -> Result<(), Failure> {
    let null = file::open("open(/dev/null)", c"/dev/null", libc::O_RDWR)?;
    // SAFETY: no pointers but a limit that is read, then set as it was.
    unsafe {
        let copy = fd::owned("dup()", libc::dup(null.as_raw_fd()))?;
        check("dup3()", libc::dup3(null.as_raw_fd(), copy.as_raw_fd(), libc::O_CLOEXEC))?;
        let mut limit = std::mem::zeroed();
        check("getrlimit()", libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit))?;
        check("setrlimit()", libc::setrlimit(libc::RLIMIT_NOFILE, &limit))?;
        libc::umask(0o022);
        libc::setpriority(libc::PRIO_PROCESS, 0, 1);
    }
    Ok(())
}
