//! epoll(7), level-triggered.

use crate::sys::{Failure, check, fd};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Events asked for in one call.
const MOST: usize = 8;

pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> Result<Epoll, Failure> {
        // SAFETY: no pointers.
        Ok(Epoll(fd::owned("epoll_create1()", unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?))
    }

    /// Watch for data to read; `key` comes back with the event.
    pub fn watch(&self, watched: RawFd, key: u64) -> Result<(), Failure> {
        self.control(libc::EPOLL_CTL_ADD, watched, libc::EPOLLIN as u32, key)
    }

    /// Watch for room to write as well.
    pub fn watch_both(&self, watched: RawFd, key: u64) -> Result<(), Failure> {
        self.control(libc::EPOLL_CTL_MOD, watched, (libc::EPOLLIN | libc::EPOLLOUT) as u32, key)
    }

    pub fn forget(&self, watched: RawFd) -> Result<(), Failure> {
        self.control(libc::EPOLL_CTL_DEL, watched, 0, 0)
    }

    fn control(&self, what: libc::c_int, watched: RawFd, events: u32, key: u64) -> Result<(), Failure> {
        let mut event = libc::epoll_event { events, u64: key };
        // SAFETY: `event` is an epoll_event.
        check("epoll_ctl()", unsafe { libc::epoll_ctl(self.0.as_raw_fd(), what, watched, &mut event) })?;
        Ok(())
    }

    /// Return the keys of what is ready, at most a few; wait for `milliseconds`, or for ever if that is -1.
    pub fn wait(&self, milliseconds: libc::c_int) -> Result<Vec<u64>, Failure> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MOST];
        // SAFETY: there is room for as many events as said.
        let ready = check("epoll_wait()", unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), MOST as libc::c_int, milliseconds)
        })?;
        Ok(events[..ready as usize].iter().map(|event| event.u64).collect())
    }
}
