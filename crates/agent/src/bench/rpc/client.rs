//! The calling side.

use super::message::{self, LONGEST};
use super::record_mark;
use crate::sys::{Failure, Stop, check, exactly};
use std::os::fd::RawFd;

/// Calls the null procedure over a connected UDP socket.
#[inline]
pub fn call_udp(socket: RawFd, xid: u32) -> Result<(), Stop> {
    let request = message::call(xid);
    let request = request.bytes();
    // SAFETY: `request` is readable for its length.
    let sent = unsafe { libc::send(socket, request.as_ptr().cast(), request.len(), 0) };
    exactly("send(udp)", request.len(), sent)?;
    let mut reply = [0; LONGEST];
    let length = receive("recv(udp)", socket, &mut reply)?;
    accept(&reply[..length], xid)
}

/// Calls the null procedure over a TCP connection.
#[inline]
pub fn call_tcp(stream: RawFd, xid: u32) -> Result<(), Stop> {
    record_mark::write("write(tcp)", stream, message::call(xid).bytes())?;
    let mut reply = [0; LONGEST];
    let length = record_mark::read("read(tcp)", stream, &mut reply)?;
    accept(&reply[..length], xid)
}

/// Receives one datagram; MSG_TRUNC makes one that doesn't fit show its true length, which then fails.
pub(super) fn receive(call: &'static str, socket: RawFd, buffer: &mut [u8]) -> Result<usize, Failure> {
    // SAFETY: `buffer` is writable for its length.
    let got = unsafe { libc::recv(socket, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_TRUNC) };
    let length = check(call, got)? as usize;
    if length > buffer.len() {
        return Err(Failure::Short { call, wanted: length, got: buffer.len() });
    }
    Ok(length)
}

fn accept(reply: &[u8], xid: u32) -> Result<(), Stop> {
    message::check_reply(reply, xid).map_err(|refusal| Stop::Broken(format!("RPC reply refused: {refusal:?}")))
}
