//! poll(2), before each read: how libtirpc waits.

use crate::sys::{Failure, check};
use std::os::fd::RawFd;

pub const READABLE: libc::c_short = libc::POLLIN;

/// What a server of libtirpc's asks for.
pub const ANY_INPUT: libc::c_short = libc::POLLIN | libc::POLLPRI | libc::POLLRDNORM | libc::POLLRDBAND;

/// A descriptor and what is waited for.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Polled(libc::pollfd);

impl From<(RawFd, libc::c_short)> for Polled {
    fn from((fd, events): (RawFd, libc::c_short)) -> Polled {
        Polled(libc::pollfd { fd, events, revents: 0 })
    }
}

/// Wait until one of them is ready, so many milliseconds at most.
#[inline]
pub fn until(call: &'static str, polled: &mut [Polled], patience: libc::c_int) -> Result<(), Failure> {
    // SAFETY: Polled is a pollfd, and there are as many as said.
    let ready = unsafe { libc::poll(polled.as_mut_ptr().cast(), polled.len() as libc::nfds_t, patience) };
    match check(call, ready)? {
        0 => Err(Failure::Errno { call, errno: libc::ETIMEDOUT }),
        _ => Ok(()),
    }
}
