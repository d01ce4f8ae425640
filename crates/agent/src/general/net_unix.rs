//! AF_UNIX sockets: streams, datagrams and sequences of packets; with a name in the file system and without; with
//! descriptors in them.

use super::child::Child;
use super::load::{Named, optional};
use super::mix::Mix;
use super::ready::{readable_by_poll, readable_by_select};
use crate::sys::{Failure, Stop, check, exactly, fd};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;

const CONNECTIONS: usize = 6;
const REQUESTS: usize = 16;
const MESSAGES: usize = 60;
const LARGEST: usize = 4096;

/// Bytes of a large message, and how many of them are written at once.
const BULK: usize = 4 * BLOCK;
const BLOCK: usize = 50_000;

pub fn round(path: &Path, mix: &mut Mix) -> Result<(), Stop> {
    drop(fd::unix_pair()?);
    named_stream(path, mix)?;
    bulk()?;
    datagrams(mix)?;
    optional(packets(mix))?;
    optional(passed())
}

/// Run a named server, as those of desktops and databases: short and long conversations.
fn named_stream(path: &Path, mix: &mut Mix) -> Result<(), Stop> {
    let listener = UnixListener::bind(path).named("bind(AF_UNIX)")?;
    let server = Child::spawn(move || {
        for _ in 0..CONNECTIONS {
            let (mut client, _) = listener.accept().named("accept(AF_UNIX)")?;
            let mut length = [0; 2];
            while client.read_exact(&mut length).is_ok() {
                let mut body = vec![0; usize::from(u16::from_le_bytes(length))];
                client.read_exact(&mut body).named("read(AF_UNIX)")?;
                client.write_all(&body).named("write(AF_UNIX)")?;
            }
        }
        Ok(())
    })?;
    for connection in 0..CONNECTIONS {
        let mut client = UnixStream::connect(path).named("connect(AF_UNIX)")?;
        for request in 0..[1, REQUESTS][connection % 2] {
            let body = vec![1; mix.size(LARGEST)];
            client.write_all(&(body.len() as u16).to_le_bytes()).named("write(AF_UNIX)")?;
            client.write_all(&body).named("write(AF_UNIX)")?;
            match request % 3 {
                0 => readable_by_poll(client.as_raw_fd())?,
                1 => readable_by_select(client.as_raw_fd())?,
                _ => {}
            }
            client.read_exact(&mut vec![0; body.len()]).named("read(AF_UNIX)")?;
        }
    }
    server.wait()?;
    Ok(std::fs::remove_file(path).named("unlink(socket)")?)
}

/// Send much in one direction, as a window's content goes to a display.
fn bulk() -> Result<(), Stop> {
    let (near, far) = fd::unix_pair()?;
    let source = Child::spawn(move || {
        let block = [1; BLOCK];
        (0..BULK / BLOCK).try_for_each(|_| fd::write_all("write(AF_UNIX)", far.as_raw_fd(), &block))
    })?;
    let mut piece = [0; BULK / 10];
    for _ in 0..10 {
        fd::read_exact("read(AF_UNIX)", near.as_raw_fd(), &mut piece)?;
    }
    source.wait()
}

/// Send datagrams of a pair to another process and back.
fn datagrams(mix: &mut Mix) -> Result<(), Stop> {
    let (near, far) = UnixDatagram::pair().named("socketpair(AF_UNIX, SOCK_DGRAM)")?;
    let server = Child::spawn(move || {
        let mut buffer = [0; LARGEST];
        for _ in 0..MESSAGES {
            let got = far.recv(&mut buffer).named("recv(AF_UNIX)")?;
            far.send(&buffer[..got]).named("send(AF_UNIX)")?;
        }
        Ok(())
    })?;
    let mut buffer = [0; LARGEST];
    for _ in 0..MESSAGES {
        near.send(&vec![2; mix.size(LARGEST)]).named("send(AF_UNIX)")?;
        near.recv(&mut buffer).named("recv(AF_UNIX)")?;
    }
    server.wait()
}

/// Send packets in order, several on their way at a time.
fn packets(mix: &mut Mix) -> Result<(), Stop> {
    const CALL: &str = "socketpair(AF_UNIX, SOCK_SEQPACKET)";
    let mut ends = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: `ends` has room for two descriptors.
    check(CALL, unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
    let (near, far) = (fd::owned(CALL, ends[0])?, fd::owned(CALL, ends[1])?);
    for _ in 0..16 {
        let sizes: Vec<_> = (0..4).map(|_| mix.size(LARGEST)).collect();
        for &size in &sizes {
            fd::write_all("write(AF_UNIX)", near.as_raw_fd(), &vec![3; size])?;
        }
        for &size in &sizes {
            let mut buffer = [0; LARGEST];
            // SAFETY: `buffer` is writable for its length.
            let got = unsafe { libc::read(far.as_raw_fd(), buffer.as_mut_ptr().cast(), LARGEST) };
            exactly("read(AF_UNIX)", size, got)?;
        }
    }
    Ok(())
}

/// Pass a pipe's end to another process, which writes into it.
fn passed() -> Result<(), Stop> {
    let (near, far) = fd::unix_pair()?;
    let (read, write) = fd::pipe()?;
    let receiver = Child::spawn(move || {
        let passed = receive(far.as_raw_fd())?;
        fd::write_all("write(passed descriptor)", passed.as_raw_fd(), b"!")
    })?;
    send(near.as_raw_fd(), write.as_raw_fd())?;
    fd::read_exact("read(pipe)", read.as_raw_fd(), &mut [0])?;
    // SAFETY: all bits 0 is a ucred, of the size said.
    unsafe {
        let mut who: libc::ucred = std::mem::zeroed();
        let mut size = size_of::<libc::ucred>() as libc::socklen_t;
        let place = (&raw mut who).cast();
        check("getsockopt(SO_PEERCRED)", {
            libc::getsockopt(near.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &mut size)
        })?;
    }
    receiver.wait()
}

/// Room for the header and data of one descriptor, aligned as a header is.
#[repr(align(8))]
struct Control([u8; 64]);

/// Call `use_it` with a header of one byte of text and room for one descriptor.
fn with_header<T>(use_it: impl FnOnce(&mut libc::msghdr) -> Result<T, Failure>) -> Result<T, Failure> {
    let mut text = [0_u8; 1];
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: text.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: all bits 0 is a header that points nowhere; CMSG_SPACE only computes.
    let (mut header, space): (libc::msghdr, _) =
        unsafe { (std::mem::zeroed(), libc::CMSG_SPACE(size_of::<RawFd>() as libc::c_uint)) };
    (header.msg_iov, header.msg_iovlen) = (&mut part, 1);
    (header.msg_control, header.msg_controllen) = (control.0.as_mut_ptr().cast(), space as usize);
    use_it(&mut header)
}

fn send(socket: RawFd, passed: RawFd) -> Result<(), Failure> {
    with_header(|header| {
        // SAFETY: there is room for one control message with one descriptor.
        unsafe {
            let control = libc::CMSG_FIRSTHDR(header);
            (*control).cmsg_level = libc::SOL_SOCKET;
            (*control).cmsg_type = libc::SCM_RIGHTS;
            (*control).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as libc::c_uint) as usize;
            libc::CMSG_DATA(control).cast::<RawFd>().write_unaligned(passed);
            exactly("sendmsg(AF_UNIX)", 1, libc::sendmsg(socket, header, 0))
        }
    })
}

fn receive(socket: RawFd) -> Result<OwnedFd, Failure> {
    const CALL: &str = "recvmsg(AF_UNIX)";
    with_header(|header| {
        // SAFETY: the kernel fills in what it has room for; what came is looked at before it is read.
        let passed = unsafe {
            exactly(CALL, 1, libc::recvmsg(socket, header, libc::MSG_CMSG_CLOEXEC))?;
            let control = libc::CMSG_FIRSTHDR(header);
            if control.is_null() || (*control).cmsg_type != libc::SCM_RIGHTS {
                return Err(Failure::Short { call: CALL, wanted: 1, got: 0 });
            }
            libc::CMSG_DATA(control).cast::<RawFd>().read_unaligned()
        };
        fd::owned(CALL, passed)
    })
}
