//! The answering side: loops until its socket fails or it is killed.

use super::client::receive;
use super::message::{self, LONGEST};
use super::record_mark;
use crate::sys::{Failure, exactly};
use std::os::fd::RawFd;

/// Answers calls on a connected UDP socket.
pub fn serve_udp(socket: RawFd) -> Result<(), Failure> {
    loop {
        let mut request = [0; LONGEST];
        let length = receive("recv(udp)", socket, &mut request)?;
        if let Some(reply) = message::answer(&request[..length]) {
            let reply = reply.bytes();
            // SAFETY: `reply` is readable for its length.
            let sent = unsafe { libc::send(socket, reply.as_ptr().cast(), reply.len(), 0) };
            exactly("send(udp)", reply.len(), sent)?;
        }
    }
}

/// Answers calls on a TCP connection.
pub fn serve_tcp(stream: RawFd) -> Result<(), Failure> {
    loop {
        let mut request = [0; LONGEST];
        let length = record_mark::read("read(tcp)", stream, &mut request)?;
        if let Some(reply) = message::answer(&request[..length]) {
            record_mark::write("write(tcp)", stream, reply.bytes())?;
        }
    }
}
