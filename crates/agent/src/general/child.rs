//! Processes of a load: they do something, end, and are waited for.

use crate::processes::Death;
use crate::sys::peer::{Fate, die_with};
use crate::sys::{Failure, Stop, check};
use std::ptr::null_mut;

/// A forked process; killed if it is not waited for.
pub struct Child(libc::pid_t);

impl Child {
    /// Fork a process that does `work` and ends; [`Child::wait`] returns its failure.
    pub fn spawn(work: impl FnOnce() -> Result<(), Failure>) -> Result<Child, Stop> {
        // SAFETY: the benchmark's process has one thread, so the child may go on as if nothing happened.
        let (parent, pid) = unsafe { (libc::getpid(), libc::fork()) };
        if check("fork()", pid)? > 0 {
            return Ok(Child(pid));
        }
        die_with(parent);
        let status = match work() {
            Ok(()) => 0,
            Err(failure) => {
                Fate::shared().tell(failure);
                1
            }
        };
        // SAFETY: no pointers; _exit runs nothing of the parent's.
        unsafe { libc::_exit(status) }
    }

    pub fn id(&self) -> libc::pid_t {
        self.0
    }

    /// Wait for its end, which must be a success.
    pub fn wait(self) -> Result<(), Stop> {
        match self.death()? {
            Death::Exit(0) => Ok(()),
            death => Err(Fate::shared().failure().unwrap_or(Stop::Broken(format!("the other process {death}")))),
        }
    }

    /// Wait for its end, whatever that is.
    pub fn death(self) -> Result<Death, Stop> {
        let mut status = 0;
        // SAFETY: `status` is writable.
        check("waitpid()", unsafe { libc::waitpid(self.0, &mut status, 0) })?;
        std::mem::forget(self);
        Ok(Death::from_status(status))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: our own child, not waited for yet, so the id is still its.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, null_mut(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::errno;

    #[test]
    fn a_child_is_waited_for_or_killed() {
        assert_eq!(Child::spawn(|| Ok(())).unwrap().wait(), Ok(()));
        let sleeping = Child::spawn(|| {
            // SAFETY: no pointers.
            unsafe { libc::pause() };
            Ok(())
        })
        .unwrap();
        let id = sleeping.id();
        drop(sleeping);
        // SAFETY: no pointers; signal 0 only asks.
        assert_eq!((unsafe { libc::kill(id, 0) }, errno::last()), (-1, libc::ESRCH));
    }
}
