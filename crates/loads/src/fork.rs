//! Making a process.

use crate::failure::{self, Failure};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

/// Fork a process that has one thread: return the child's id in the parent, None in the child.
pub fn split() -> Result<Option<Pid>, Failure> {
    // SAFETY: no other thread runs that could hold a lock now; threads are started in computations, and joined there.
    match unsafe { fork() } {
        Ok(ForkResult::Parent { child }) => Ok(Some(child)),
        Ok(ForkResult::Child) => Ok(None),
        Err(errno) => Err(failure::call_failure("make a process", errno)),
    }
}

/// Wait for a child that should exit with status 0.
pub fn wait(child: Pid) -> Result<(), Failure> {
    match waitpid(child, None) {
        Ok(WaitStatus::Exited(_, 0)) => Ok(()),
        Ok(WaitStatus::Exited(_, status)) => {
            Err(Failure::of_surroundings(format!("a process exited with status {status}"), ""))
        }
        Ok(WaitStatus::Signaled(_, signal, _)) => {
            let hint = "look for the kernel's reason on its console; SIGKILL is what it sends when memory runs out";
            Err(Failure::of_surroundings(format!("a process was killed by {signal:?}"), hint))
        }
        Ok(other) => Err(Failure::of_surroundings(format!("a process is {other:?}"), "")),
        Err(errno) => Err(failure::call_failure("wait for a process", errno)),
    }
}
