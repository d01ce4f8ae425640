//! The second process of a two-process benchmark, and how its end is noticed and told.
//!
//! A peer that fails leaves the failure in memory that the agent shares with all its children, and exits. The kernel then
//! sends SIGCHLD to the benchmark's process, whose handler ends it at once, wherever it waits: a datagram that never
//! comes has no end of file. Until then all this costs nothing.

use super::{Failure, Stop, check};
use crate::processes::Death;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// Exit status of a benchmark's process whose peer has died.
pub const PEER_DIED: i32 = 102;

/// A forked process that dies with this value, and with its parent.
pub struct Peer {
    pid: libc::pid_t,
}

/// Make the calling process die with its parent, which had the id `parent` when it forked.
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
    /// Fork and runs `serve`, which normally loops until it is killed; when it fails, so does the benchmark. `serve`
    /// must own its descriptors: the parent's copies are closed on return.
    pub fn spawn<F: FnOnce() -> Result<(), Failure>>(serve: F) -> Result<Peer, Stop> {
        on_death(end_with_peer as *const () as libc::sighandler_t);
        // SAFETY: the agent has one thread, so the child may go on as if nothing happened.
        let (parent, pid) = unsafe { (libc::getpid(), libc::fork()) };
        if check("fork()", pid)? > 0 {
            return Ok(Peer { pid });
        }
        die_with(parent);
        let status = match serve() {
            Ok(()) => 0,
            Err(failure) => {
                Fate::shared().tell(failure);
                1
            }
        };
        // SAFETY: no pointers; _exit runs nothing of the parent's.
        unsafe { libc::_exit(status) }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        on_death(libc::SIG_DFL);
        // SAFETY: our own child, not waited for yet, so the id is still its.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, null_mut(), 0);
        }
    }
}

/// Set what the end of a child does to this process.
fn on_death(handler: libc::sighandler_t) {
    // SAFETY: all bits 0 is a sigaction without flags or blocked signals; a null for "the old one is not asked for".
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_NOCLDSTOP;
        libc::sigaction(libc::SIGCHLD, &action, null_mut());
    }
}

/// End the benchmark when a peer died. Handler of SIGCHLD: a peer lives as long as its benchmark. Only what a handler
/// may do: atomics, waitpid, _exit.
extern "C" fn end_with_peer(_: libc::c_int) {
    let mut status = 0;
    // SAFETY: `status` is writable; _exit has no pointers.
    unsafe {
        if libc::waitpid(-1, &mut status, libc::WNOHANG) > 0 {
            Fate::shared().status.store(status, Ordering::Relaxed);
            libc::_exit(PEER_DIED);
        }
    }
}

/// How a benchmark's peers fared, in memory that the agent shares with the processes which it forks. All 0 at first.
#[repr(C)]
pub struct Fate {
    /// NONE, WRITING or TOLD; only a TOLD failure may be read.
    state: AtomicU32,
    failure: UnsafeCell<MaybeUninit<Failure>>,
    /// Wait status of a peer that died.
    status: AtomicI32,
}

const NONE: u32 = 0;
const WRITING: u32 = 1;
const TOLD: u32 = 2;

// SAFETY: `failure` is written by whoever took `state` from NONE to WRITING, and read when it is TOLD.
unsafe impl Sync for Fate {}
// SAFETY: as above.
unsafe impl Send for Fate {}

impl Fate {
    /// Return the state that this process shares with its children: with those that it forks after it first asked.
    pub fn shared() -> &'static Fate {
        static SHARED: OnceLock<&'static Fate> = OnceLock::new();
        SHARED.get_or_init(|| {
            let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
            // SAFETY: a new, zeroed mapping, which is what a Fate of NONE looks like. Never unmapped.
            let memory = unsafe { libc::mmap(null_mut(), size_of::<Fate>(), access, flags, -1, 0) };
            assert!(memory != libc::MAP_FAILED, "mmap(MAP_SHARED | MAP_ANONYMOUS)");
            // SAFETY: as above.
            unsafe { &*memory.cast::<Fate>() }
        })
    }

    /// Forget the failure: another benchmark begins, and no process of the last one is left.
    pub fn clear(&self) {
        self.state.store(NONE, Ordering::Release);
        self.status.store(0, Ordering::Release);
    }

    /// Report a failure, if this is the first peer that fails; what the others then meet is a consequence.
    pub fn tell(&self, failure: Failure) {
        if self.state.compare_exchange(NONE, WRITING, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            // SAFETY: nobody else writes, and nobody reads before TOLD. Its text is in the program, which all share.
            unsafe { (*self.failure.get()).write(failure) };
            self.state.store(TOLD, Ordering::Release);
        }
    }

    /// Return why a peer failed, if one did.
    pub fn failure(&self) -> Option<Stop> {
        if self.state.load(Ordering::Acquire) != TOLD {
            return None;
        }
        // SAFETY: TOLD, so it was written; Failure is Copy.
        let failure = unsafe { (*self.failure.get()).assume_init() };
        Some(match Stop::from(failure) {
            Stop::Unsupported(reason) => Stop::Unsupported(format!("the other process: {reason}")),
            Stop::Broken(reason) => Stop::Broken(format!("the other process: {reason}")),
        })
    }

    /// Return why the benchmark's process ended with [`PEER_DIED`].
    pub fn end(&self) -> Stop {
        let death = Death::from_status(self.status.load(Ordering::Acquire));
        self.failure().unwrap_or_else(|| Stop::Broken(format!("the other process: {death}")))
    }
}
