//! Datagrams: to a server that sends them back, connected and not, one by one and several at a time.

use super::child::Child;
use super::load::{Named, fails_with, optional};
use super::mix::Mix;
use super::ready::{loopback, readable_by_poll, readable_by_select};
use crate::sys::inet::Datagram;
use crate::sys::{Failure, Stop, check, inet};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::time::Duration;

const DATAGRAMS: usize = 60;
const LARGEST: usize = 8192;

/// The number of questions to a name server.
const QUESTIONS: usize = 40;

/// Of several at a time.
const AT_ONCE: usize = 4;

pub fn round(mix: &mut Mix) -> Result<(), Stop> {
    // Made by hand, so that a kernel without it is distinguished from one where it fails.
    drop(inet::udp()?);
    let loopback = loopback(mix);
    let socket = || UdpSocket::bind(loopback).named("bind(127.0.0.1)");
    let (server, client) = (socket()?, socket()?);
    let address = server.local_addr().named("getsockname()")?;
    // An empty datagram ends it.
    let serving = Child::spawn(move || serve(&server))?;
    client.set_read_timeout(Some(Duration::from_secs(10))).named("setsockopt(SO_RCVTIMEO)")?;
    let mut buffer = vec![0; LARGEST];
    for i in 0..DATAGRAMS {
        let message = vec![i as u8; mix.size(LARGEST)];
        if i == DATAGRAMS / 2 {
            client.connect(address).named("connect(127.0.0.1)")?;
        }
        if i < DATAGRAMS / 2 {
            client.send_to(&message, address).named("sendto(udp)")?;
        } else {
            client.send(&message).named("send(udp)")?;
        }
        match i % 3 {
            0 => readable_by_poll(client.as_raw_fd())?,
            1 => readable_by_select(client.as_raw_fd())?,
            _ => {}
        }
        let (got, from) = client.recv_from(&mut buffer).named("recvfrom(udp)")?;
        if (got, from) != (message.len(), address) {
            return Err(Stop::Broken(format!("recvfrom(udp): {got} of {} B from {from}", message.len())));
        }
    }
    optional(several(&client))?;
    client.set_nonblocking(true).named("fcntl(O_NONBLOCK)")?;
    let nothing = client.recv(&mut buffer).map_or(-1, |_| 0);
    fails_with("recv(udp)", libc::EAGAIN, nothing)?;
    client.send(&[]).named("send(udp)")?;
    serving.wait()?;
    ask_names(mix)?;
    optional(unreachable(loopback, address))
}

fn serve(server: &UdpSocket) -> Result<(), Failure> {
    let mut buffer = vec![0; LARGEST];
    loop {
        match server.recv_from(&mut buffer).named("recvfrom(udp)")? {
            (0, _) => return Ok(()),
            (got, from) => _ = server.send_to(&buffer[..got], from).named("sendto(udp)")?,
        }
    }
}

/// Run a server that answers from the address that it was asked at, as name servers do, and a client that sends with
/// sendto.
fn ask_names(mix: &mut Mix) -> Result<(), Stop> {
    let (server, address) = inet::udp_server()?;
    let serving = Child::spawn(move || {
        let mut question = Datagram::<512>::new();
        for _ in 0..QUESTIONS {
            let answer = question.receive("recvmsg(udp)", server.as_raw_fd())?.repeat(2);
            question.answer("sendmsg(udp)", server.as_raw_fd(), &answer)?;
        }
        Ok(())
    })?;
    let client = inet::udp()?;
    for _ in 0..QUESTIONS {
        let question = vec![1; mix.size(512)];
        inet::send_to("sendto(udp)", client.as_raw_fd(), &question, &address)?;
        readable_by_poll(client.as_raw_fd())?;
        Datagram::<1024>::new().receive("recvmsg(udp)", client.as_raw_fd())?;
    }
    serving.wait()
}

/// Send several datagrams in one call, out and back.
fn several(client: &UdpSocket) -> Result<(), Failure> {
    let mut buffers = [[7_u8; 64]; AT_ONCE];
    let mut parts = buffers.each_mut().map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: 64 });
    let mut messages = parts.each_mut().map(|part| {
        // SAFETY: all bits 0 is a header that points nowhere.
        let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
        (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (part, 1);
        message
    });
    let socket = client.as_raw_fd();
    let mut rest = AT_ONCE;
    // SAFETY: the headers point to one part each, which is 64 bytes of a buffer.
    unsafe {
        check("sendmmsg(udp)", libc::sendmmsg(socket, messages.as_mut_ptr(), AT_ONCE as libc::c_uint, 0))?;
        while rest > 0 {
            let wait = libc::MSG_WAITFORONE;
            let got = libc::recvmmsg(socket, messages.as_mut_ptr(), rest as libc::c_uint, wait, null_mut());
            rest -= (check("recvmmsg(udp)", got)? as usize).clamp(1, rest);
        }
    }
    Ok(())
}

/// Send to a server that has gone: the kernel reports so with the next call.
fn unreachable(loopback: &str, address: SocketAddr) -> Result<(), Failure> {
    let client = UdpSocket::bind(loopback).named("bind(127.0.0.1)")?;
    client.connect(address).named("connect(127.0.0.1)")?;
    client.send(b"anybody?").named("send(udp)")?;
    let refused = client.send(b"nobody").map_or(-1, |_| 0);
    fails_with("send(closed port)", libc::ECONNREFUSED, refused)
}
