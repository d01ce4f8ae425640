//! Connected loopback sockets.

use super::{Failure, check, exactly, fd};
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

fn loopback(port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port,
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    }
}

/// Return a TCP socket.
#[inline]
pub fn tcp() -> Result<OwnedFd, Failure> {
    // SAFETY: no pointers.
    fd::owned("socket(AF_INET, SOCK_STREAM)", unsafe {
        libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0)
    })
}

/// Return a UDP socket.
pub fn udp() -> Result<OwnedFd, Failure> {
    // SAFETY: no pointers.
    fd::owned("socket(AF_INET, SOCK_DGRAM)", unsafe {
        libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0)
    })
}

/// Bind to 127.0.0.1 and a port of the kernel's choice.
fn bind(socket: RawFd) -> Result<libc::sockaddr_in, Failure> {
    let mut address = loopback(0);
    let mut length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: `address` is a sockaddr_in of `length` bytes in both calls.
    unsafe {
        check("bind(127.0.0.1)", libc::bind(socket, (&raw const address).cast(), length))?;
        check("getsockname()", libc::getsockname(socket, (&raw mut address).cast(), &mut length))?;
    }
    Ok(address)
}

#[inline]
pub fn connect(socket: RawFd, address: &libc::sockaddr_in) -> Result<(), Failure> {
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: `address` is a sockaddr_in of `length` bytes.
    check("connect(127.0.0.1)", unsafe { libc::connect(socket, (&raw const *address).cast(), length) })?;
    Ok(())
}

fn set<T>(socket: RawFd, level: libc::c_int, name: libc::c_int, value: T) -> Result<(), Failure> {
    // SAFETY: `value` is readable for its size.
    check("setsockopt()", unsafe {
        libc::setsockopt(socket, level, name, (&raw const value).cast(), size_of::<T>() as libc::socklen_t)
    })?;
    Ok(())
}

/// Send everything at once: a benchmark must not wait for Nagle's timer.
fn no_delay(socket: RawFd) -> Result<(), Failure> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1 as libc::c_int)
}

/// Set buffers of `bytes` in both directions, or as large as the kernel allows: with sizes of its own choice, they and
/// the window would grow while it is measured.
pub fn fix_buffers(socket: RawFd, bytes: libc::c_int) -> Result<(), Failure> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)?;
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes)
}

/// Allow an address to be bound although a connection of it is in TIME_WAIT.
#[inline]
pub fn reuse_address(socket: RawFd) -> Result<(), Failure> {
    set(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1 as libc::c_int)
}

/// Close resets the connection: nothing stays behind in TIME_WAIT, and no port runs out.
#[inline]
pub fn reset_on_close(socket: RawFd) -> Result<(), Failure> {
    set(socket, libc::SOL_SOCKET, libc::SO_LINGER, libc::linger { l_onoff: 1, l_linger: 0 })
}

/// Return a listening TCP socket and its address.
pub fn listener() -> Result<(OwnedFd, libc::sockaddr_in), Failure> {
    let socket = tcp()?;
    let address = bind(socket.as_raw_fd())?;
    // SAFETY: no pointers.
    check("listen()", unsafe { libc::listen(socket.as_raw_fd(), 128) })?;
    Ok((socket, address))
}

#[inline]
pub fn accept(listener: RawFd) -> Result<OwnedFd, Failure> {
    // SAFETY: null for "no address wanted" is allowed.
    fd::owned("accept()", unsafe {
        libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), libc::SOCK_CLOEXEC)
    })
}

/// Return two ends of one TCP connection over loopback.
pub fn tcp_pair() -> Result<(OwnedFd, OwnedFd), Failure> {
    let (listener, address) = listener()?;
    let near = tcp()?;
    // The kernel completes the handshake into the backlog; accept may come after.
    connect(near.as_raw_fd(), &address)?;
    let far = accept(listener.as_raw_fd())?;
    no_delay(near.as_raw_fd())?;
    no_delay(far.as_raw_fd())?;
    Ok((near, far))
}

/// Return a UDP socket that tells of each datagram where it came in, as servers with several addresses need it, and its
/// address.
pub fn udp_server() -> Result<(OwnedFd, libc::sockaddr_in), Failure> {
    let socket = udp()?;
    let address = bind(socket.as_raw_fd())?;
    set(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_PKTINFO, 1 as libc::c_int)?;
    Ok((socket, address))
}

/// Send a datagram to an address.
#[inline]
pub fn send_to(call: &'static str, socket: RawFd, bytes: &[u8], to: &libc::sockaddr_in) -> Result<(), Failure> {
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: `bytes` are readable for their length, `to` is a sockaddr_in of `length` bytes.
    exactly(call, bytes.len(), unsafe {
        libc::sendto(socket, bytes.as_ptr().cast(), bytes.len(), 0, (&raw const *to).cast(), length)
    })
}

/// Bytes of a control message with an in_pktinfo: CMSG_SPACE of it.
const CONTROL: usize = 32;

/// A datagram of up to N bytes that was received, with whom it is from and where it came in: what an answer needs.
pub struct Datagram<const N: usize> {
    bytes: [u8; N],
    from: libc::sockaddr_in,
    control: [u64; CONTROL / 8],
}

impl<const N: usize> Datagram<N> {
    pub fn new() -> Datagram<N> {
        Datagram { bytes: [0; N], from: loopback(0), control: [0; CONTROL / 8] }
    }

    /// Receive the next datagram; one that doesn't fit fails.
    #[inline]
    pub fn receive(&mut self, call: &'static str, socket: RawFd) -> Result<&[u8], Failure> {
        let mut part = libc::iovec { iov_base: self.bytes.as_mut_ptr().cast(), iov_len: N };
        let mut header = self.header(&mut part);
        // SAFETY: everything in `header` is a field of ours, or `part`, with its size.
        let got = check(call, unsafe { libc::recvmsg(socket, &mut header, libc::MSG_TRUNC) })? as usize;
        if got > N { Err(Failure::Short { call, wanted: got, got: N }) } else { Ok(&self.bytes[..got]) }
    }

    /// Send bytes to whom it is from.
    #[inline]
    pub fn answer(&mut self, call: &'static str, socket: RawFd, bytes: &[u8]) -> Result<(), Failure> {
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let header = self.header(&mut part);
        // SAFETY: as above; sendmsg doesn't write.
        exactly(call, bytes.len(), unsafe { libc::sendmsg(socket, &header, 0) })
    }

    fn header(&mut self, part: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: all bits 0 is a msghdr that points nowhere.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_name = (&raw mut self.from).cast();
        header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        header.msg_iov = part;
        header.msg_iovlen = 1;
        header.msg_control = self.control.as_mut_ptr().cast();
        header.msg_controllen = CONTROL;
        header
    }
}

/// Return two UDP sockets connected to each other over loopback.
pub fn udp_pair() -> Result<(OwnedFd, OwnedFd), Failure> {
    let (near, far) = (udp()?, udp()?);
    let near_address = bind(near.as_raw_fd())?;
    let far_address = bind(far.as_raw_fd())?;
    connect(near.as_raw_fd(), &far_address)?;
    connect(far.as_raw_fd(), &near_address)?;
    Ok((near, far))
}
