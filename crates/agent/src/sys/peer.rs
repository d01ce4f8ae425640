//! The second process of a two-process benchmark.

use super::{Failure, Stop, check};

/// A forked process that dies with this value, and with its parent.
pub struct Peer {
    pid: libc::pid_t,
}

/// Makes the calling process die with its parent, which had the id `parent` when it forked.
pub fn die_with(parent: libc::pid_t) {
    // SAFETY: no pointers. Whoever lost its parent before prctl would wait for ever, so look again afterwards.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            libc::_exit(1);
        }
    }
}

impl Peer {
    /// Forks and runs `serve`, which normally loops until it is killed; when it fails, the peer exits and its
    /// descriptors close, which the other side notices. `serve` must own its descriptors: the parent's copies are
    /// closed on return.
    pub fn spawn<F: FnOnce() -> Result<(), Failure>>(serve: F) -> Result<Peer, Stop> {
        // SAFETY: the agent has one thread, so the child may go on as if nothing happened.
        let (parent, pid) = unsafe { (libc::getpid(), libc::fork()) };
        if check("fork()", pid)? > 0 {
            return Ok(Peer { pid });
        }
        die_with(parent);
        let status = i32::from(serve().is_err());
        // SAFETY: no pointers; _exit runs nothing of the parent's.
        unsafe { libc::_exit(status) }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // SAFETY: our own child, not waited for yet, so the id is still its.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}
