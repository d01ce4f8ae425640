//! A message to a peer and back: what lat_pipe, lat_unix, lat_tcp and lat_udp have in common.

use crate::measure::Recorder;
use crate::sys::peer::Peer;
use crate::sys::{Stop, exactly, fd};
use std::os::fd::{AsRawFd, OwnedFd};

/// Where one side reads from and writes to; the same descriptor for a socket.
pub struct End {
    pub from: OwnedFd,
    pub to: OwnedFd,
}

impl End {
    pub fn socket(socket: OwnedFd) -> Result<End, Stop> {
        // SAFETY: no pointers.
        let copy = fd::owned("fcntl(F_DUPFD)", unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0) })?;
        Ok(End { from: socket, to: copy })
    }
}

/// Names of the calls, for the record of a failure.
pub struct Calls {
    pub read: &'static str,
    pub write: &'static str,
}

/// Measures round trips of a message of `bytes` over a byte stream, which may deliver it in pieces.
pub fn stream(recorder: &Recorder, near: End, far: End, bytes: usize, calls: &'static Calls) -> Result<(), Stop> {
    let mut echo = vec![0_u8; bytes];
    let mut message = echo.clone();
    let _peer = Peer::spawn(move || {
        loop {
            fd::read_exact(calls.read, far.from.as_raw_fd(), &mut echo)?;
            fd::write_all(calls.write, far.to.as_raw_fd(), &echo)?;
        }
    })?;
    let (from, to) = (near.from.as_raw_fd(), near.to.as_raw_fd());
    recorder.measure(|trips| {
        for _ in 0..trips {
            fd::write_all(calls.write, to, &message)?;
            fd::read_exact(calls.read, from, &mut message)?;
        }
        Ok(trips)
    })
}

/// Measures round trips of datagrams of `bytes`, which arrive whole or not at all.
pub fn datagram(recorder: &Recorder, near: OwnedFd, far: OwnedFd, bytes: usize) -> Result<(), Stop> {
    const SEND: &str = "send(udp)";
    const RECEIVE: &str = "recv(udp)";
    let mut echo = vec![0_u8; bytes];
    let mut message = echo.clone();
    let _peer = Peer::spawn(move || {
        loop {
            let socket = far.as_raw_fd();
            // SAFETY: `echo` is writable, then readable, for its length.
            exactly(RECEIVE, bytes, unsafe { libc::recv(socket, echo.as_mut_ptr().cast(), bytes, 0) })?;
            // SAFETY: as above.
            exactly(SEND, bytes, unsafe { libc::send(socket, echo.as_ptr().cast(), bytes, 0) })?;
        }
    })?;
    let socket = near.as_raw_fd();
    recorder.measure(|trips| {
        for _ in 0..trips {
            // SAFETY: `message` is readable, then writable, for its length.
            exactly(SEND, bytes, unsafe { libc::send(socket, message.as_ptr().cast(), bytes, 0) })?;
            // SAFETY: as above.
            exactly(RECEIVE, bytes, unsafe { libc::recv(socket, message.as_mut_ptr().cast(), bytes, 0) })?;
        }
        Ok(trips)
    })
}
