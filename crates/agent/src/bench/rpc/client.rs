//! The calling side: the system calls that libtirpc makes for a call.

use super::message::{self, LONGEST};
use super::record_mark::{self, Reader};
use super::wait::{self, READABLE};
use crate::sys::{Failure, Stop, check, exactly, inet};
use std::os::fd::RawFd;
use std::ptr::null_mut;

/// Milliseconds to wait for an answer, which comes at once.
const PATIENCE: libc::c_int = 10_000;

/// Call the null procedure at `server` over a UDP socket.
#[inline]
pub fn call_udp(socket: RawFd, server: &libc::sockaddr_in, xid: u32) -> Result<(), Stop> {
    let mut reply = [0; LONGEST];
    let length = without_signals(|| {
        inet::send_to("sendto(udp)", socket, message::call(xid).bytes(), server)?;
        wait::until("poll(udp)", &mut [(socket, READABLE).into()], PATIENCE)?;
        // SAFETY: `reply` is writable for its length. MSG_TRUNC makes a datagram that doesn't fit show its true length.
        let got = unsafe { libc::recv(socket, reply.as_mut_ptr().cast(), reply.len(), libc::MSG_TRUNC) };
        let length = check("recv(udp)", got)?;
        if length as usize > reply.len() { exactly("recv(udp)", reply.len(), length).map(|()| 0) } else { Ok(length) }
    })?;
    accept(&reply[..length as usize], xid)
}

/// Call the null procedure over a TCP connection.
#[inline]
pub fn call_tcp(stream: RawFd, reader: &mut Reader, xid: u32) -> Result<(), Stop> {
    let reply = without_signals(|| {
        record_mark::write("write(tcp)", stream, message::call(xid).bytes())?;
        let until = || wait::until("poll(tcp)", &mut [(stream, READABLE).into()], PATIENCE);
        reader.read("read(tcp)", stream, until)
    })?;
    accept(reply, xid)
}

/// Block signals until a call is over.
#[inline]
fn without_signals<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // SAFETY: the sets are made by the calls for it.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        check("sigprocmask()", libc::sigprocmask(libc::SIG_SETMASK, &all, &mut before))?;
        let result = body();
        check("sigprocmask()", libc::sigprocmask(libc::SIG_SETMASK, &before, null_mut()))?;
        result
    }
}

fn accept(reply: &[u8], xid: u32) -> Result<(), Stop> {
    message::check_reply(reply, xid).map_err(|refusal| Stop::Broken(format!("RPC reply refused: {refusal:?}")))
}
