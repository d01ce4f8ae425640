//! The answering side: loops until its socket fails or it is killed.
//!
//! The system calls are those of a server of libtirpc's, which serves both protocols: it polls all of its sockets, the
//! listening one too.

use super::message::{self, LONGEST};
use super::record_mark::{self, Reader};
use super::wait::{self, ANY_INPUT, READABLE};
use crate::sys::{Failure, inet};
use std::os::fd::{AsRawFd, OwnedFd};

/// Milliseconds for what a client has begun.
const PATIENCE: libc::c_int = 35_000;

const FOR_EVER: libc::c_int = -1;

/// Where calls come in.
pub struct Sockets {
    pub udp: OwnedFd,
    pub listener: OwnedFd,
}

impl Sockets {
    /// Answer calls on the UDP socket.
    pub fn serve_udp(&self) -> Result<(), Failure> {
        let (udp, listener) = (self.udp.as_raw_fd(), self.listener.as_raw_fd());
        let mut datagram = inet::Datagram::<LONGEST>::new();
        loop {
            wait::until("poll(rpc)", &mut [udp, listener].map(|socket| (socket, ANY_INPUT).into()), FOR_EVER)?;
            let request = datagram.receive("recvmsg(udp)", udp)?;
            if let Some(reply) = message::answer(request) {
                datagram.answer("sendmsg(udp)", udp, reply.bytes())?;
            }
        }
    }

    /// Answer calls on a TCP connection.
    pub fn serve_tcp(&self, stream: &OwnedFd) -> Result<(), Failure> {
        let (udp, listener, stream) = (self.udp.as_raw_fd(), self.listener.as_raw_fd(), stream.as_raw_fd());
        let mut reader = Reader::new();
        loop {
            wait::until("poll(rpc)", &mut [udp, listener, stream].map(|socket| (socket, ANY_INPUT).into()), FOR_EVER)?;
            let until = || wait::until("poll(tcp)", &mut [(stream, READABLE).into()], PATIENCE);
            let request = reader.read("read(tcp)", stream, until)?;
            if let Some(reply) = message::answer(request) {
                record_mark::write("write(tcp)", stream, reply.bytes())?;
            }
        }
    }
}
