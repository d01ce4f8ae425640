//! Bytes from a peer, as many as asked for: what bw_pipe, bw_tcp and bw_unix have in common.
//!
//! The reader asks for a number of bytes and the writer sends just that many, so that an iteration begins and ends with
//! nothing on the way.

use super::round_trip::{End, pattern, verify};
use crate::measure::Recorder;
use crate::params::Param;
use crate::sys::peer::Peer;
use crate::sys::{Failure, Stop, fd};
use std::os::fd::AsRawFd;

/// Size of one write, and largest size of one read.
pub const SIZE_KB: Param =
    Param { name: "size_kb", description: "kB per transfer", default: 64, in_real_time: None, min: 1, max: 16384 };

/// Measure the bytes that a peer writes to `far` in transfers of `size` bytes and we read from `near`.
pub fn transfer(recorder: &Recorder, near: End, far: End, size: usize, read: &'static str) -> Result<(), Stop> {
    let block = pattern(size);
    let _peer = Peer::spawn(move || {
        loop {
            let transfers = fd::read_u64("read(request)", far.from.as_raw_fd())?;
            for _ in 0..transfers {
                fd::write_all("write(transfer)", far.to.as_raw_fd(), &block)?;
            }
        }
    })?;
    let mut buffer = vec![0_u8; size];
    let (from, to) = (near.from.as_raw_fd(), near.to.as_raw_fd());
    fd::write_u64("write(request)", to, 1)?;
    fd::read_exact(read, from, &mut buffer)?;
    verify(read, &buffer)?;
    recorder.measure(|transfers| {
        fd::write_u64("write(request)", to, transfers)?;
        let total = transfers * size as u64;
        let mut rest = total;
        while rest > 0 {
            let most = size.min(rest as usize);
            // SAFETY: `buffer` is writable for `size` bytes or more.
            let got = unsafe { libc::read(from, buffer.as_mut_ptr().cast(), most) };
            if got <= 0 {
                return Err(Failure::transfer(read, most, got).into());
            }
            rest -= got as u64;
        }
        Ok(total)
    })
}
