//! A message to a peer and back: what lat_pipe, lat_unix, lat_tcp and lat_udp have in common.

use crate::measure::Recorder;
use crate::params::Param;
use crate::sys::peer::Peer;
use crate::sys::{Stop, exactly, fd};
use std::os::fd::{AsRawFd, OwnedFd};

/// The size of a message in a stream.
pub const BYTES: Param =
    Param { name: "bytes", description: "bytes in the message", default: 1, in_real_time: None, min: 1, max: 1 << 20 };

/// Return bytes that distinguish what was sent from what was there, what is misplaced, and one block of 256 from the
/// next.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i as u8).wrapping_mul(7) ^ (i >> 8) as u8 ^ 0x5a).collect()
}

/// Refuse what arrived if it isn't the pattern. Done once, before anything is measured.
pub fn verify(call: &'static str, arrived: &[u8]) -> Result<(), Stop> {
    let sent = pattern(arrived.len());
    match sent.iter().zip(arrived).position(|(sent, arrived)| sent != arrived) {
        None => Ok(()),
        Some(i) => Err(Stop::Broken(format!(
            "{call}: byte {i} of {} is {:#04x}, sent was {:#04x}",
            sent.len(),
            arrived[i],
            sent[i]
        ))),
    }
}

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

/// Measure round trips of a message of `bytes` over a byte stream, which may deliver it in pieces.
pub fn stream(recorder: &Recorder, near: End, far: End, bytes: usize, calls: &'static Calls) -> Result<(), Stop> {
    let mut echo = vec![0_u8; bytes];
    let mut arrived = echo.clone();
    let message = pattern(bytes);
    let _peer = Peer::spawn(move || {
        loop {
            fd::read_exact(calls.read, far.from.as_raw_fd(), &mut echo)?;
            fd::write_all(calls.write, far.to.as_raw_fd(), &echo)?;
        }
    })?;
    let (from, to) = (near.from.as_raw_fd(), near.to.as_raw_fd());
    let trip = |arrived: &mut [u8]| {
        fd::write_all(calls.write, to, &message)?;
        fd::read_exact(calls.read, from, arrived)
    };
    trip(&mut arrived)?;
    verify(calls.read, &arrived)?;
    recorder.measure(|trips| {
        for _ in 0..trips {
            trip(&mut arrived)?;
        }
        Ok(trips)
    })
}

/// Measure round trips of datagrams of `bytes`, which arrive whole or not at all.
pub fn datagram(recorder: &Recorder, near: OwnedFd, far: OwnedFd, bytes: usize) -> Result<(), Stop> {
    const SEND: &str = "send(udp)";
    const RECEIVE: &str = "recv(udp)";
    let mut echo = vec![0_u8; bytes];
    let mut arrived = echo.clone();
    let message = pattern(bytes);
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
    let trip = |arrived: &mut [u8]| {
        // SAFETY: `message` is readable for its length.
        exactly(SEND, bytes, unsafe { libc::send(socket, message.as_ptr().cast(), bytes, 0) })?;
        // SAFETY: `arrived` is writable for its length.
        exactly(RECEIVE, bytes, unsafe { libc::recv(socket, arrived.as_mut_ptr().cast(), bytes, 0) })
    };
    trip(&mut arrived)?;
    verify(RECEIVE, &arrived)?;
    recorder.measure(|trips| {
        for _ in 0..trips {
            trip(&mut arrived)?;
        }
        Ok(trips)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_as_it_was_sent_is_accepted() {
        assert_eq!(verify("read(pipe)", &pattern(100_000)), Ok(()));
    }

    #[test]
    fn a_byte_that_changed_a_block_out_of_place_and_a_buffer_that_nobody_wrote_to_are_refused() {
        let mut changed = pattern(1_000);
        changed[700] ^= 1;
        let reason = "read(pipe): byte 700 of 1000 is 0x7d, sent was 0x7c";
        assert_eq!(verify("read(pipe)", &changed), Err(Stop::Broken(reason.into())));
        let mut shifted = pattern(1_000);
        shifted.rotate_left(256);
        assert!(verify("read(pipe)", &shifted).is_err());
        assert!(verify("read(pipe)", &[0; 64]).is_err());
    }
}
