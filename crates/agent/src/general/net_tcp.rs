//! A TCP server that waits with epoll, its clients, and what goes wrong between them.

use super::child::Child;
use super::epoll::Epoll;
use super::load::{Named, fails_with, optional};
use super::mix::Mix;
use super::ready::{loopback, readable_by_poll, readable_by_select};
use crate::sys::{Failure, Stop, check, inet};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Connections of one request, and of many.
const SHORT: usize = 8;
const LONG: usize = 3;
const REQUESTS: usize = 60;

/// Bytes of the one large answer.
const LARGE: usize = 200_000;

/// A request: how long its body is, which follows, and how long the answer shall be.
const HEAD: usize = 8;
const LARGEST: usize = 8192;

pub fn round(mix: &mut Mix) -> Result<(), Stop> {
    // Made by hand, so that a kernel without it is distinguished from one where it fails.
    drop(inet::tcp()?);
    optional(serve_clients(mix))?;
    Ok(refused()?)
}

fn serve_clients(mix: &mut Mix) -> Result<(), Stop> {
    let listener = TcpListener::bind(loopback(mix)).named("bind(127.0.0.1)")?;
    let address = listener.local_addr().named("getsockname()")?;
    let epoll = Epoll::new()?;
    // Bulk, one by one, together, and one that breaks off.
    let server = Child::spawn(move || serve(&listener, &epoll, SHORT + LONG + 2))?;
    for i in 0..SHORT {
        let mut client = connect(address)?;
        if i % 2 == 0 {
            options(&client)?;
        }
        ask(&mut client, mix.size(4096), mix.size(LARGEST), i)?;
        match i % 4 {
            0 => client.shutdown(Shutdown::Both).named("shutdown()")?,
            1 => client.shutdown(Shutdown::Write).named("shutdown()")?,
            _ => {}
        }
    }
    let mut clients = (0..LONG).map(|_| connect(address)).collect::<Result<Vec<_>, _>>()?;
    for client in &clients {
        client.set_nodelay(true).named("setsockopt(TCP_NODELAY)")?;
    }
    for i in 0..REQUESTS {
        let client = &mut clients[mix.below(LONG)];
        ask(client, mix.size(1024), mix.size(LARGEST), i)?;
    }
    drop(clients);
    let mut bulk = connect(address)?;
    ask(&mut bulk, 1, LARGE, 0)?;
    drop(bulk);
    let hasty = connect(address)?;
    inet::reset_on_close(hasty.as_raw_fd())?;
    drop(hasty);
    server.wait()
}

fn connect(address: SocketAddr) -> Result<TcpStream, Failure> {
    TcpStream::connect(address).named("connect(127.0.0.1)")
}

/// Serve until so many connections have ended.
fn serve(listener: &TcpListener, epoll: &Epoll, connections: usize) -> Result<(), Failure> {
    let mut clients: Vec<Option<TcpStream>> = Vec::new();
    let mut buffer = vec![0x5a; LARGE];
    let mut ended = 0;
    listener.set_nonblocking(true).named("fcntl(O_NONBLOCK)")?;
    epoll.watch(listener.as_raw_fd(), u64::MAX)?;
    while ended < connections {
        for key in epoll.wait(-1)? {
            if key == u64::MAX {
                accept_all(listener, epoll, &mut clients)?;
                continue;
            }
            let slot = &mut clients[key as usize];
            let Some(client) = slot else { continue };
            if !answer(client, &mut buffer)? {
                epoll.forget(client.as_raw_fd())?;
                *slot = None;
                ended += 1;
            }
        }
    }
    Ok(())
}

fn accept_all(listener: &TcpListener, epoll: &Epoll, clients: &mut Vec<Option<TcpStream>>) -> Result<(), Failure> {
    loop {
        match listener.accept() {
            Ok((client, _)) => {
                client.set_nodelay(true).named("setsockopt(TCP_NODELAY)")?;
                epoll.watch(client.as_raw_fd(), clients.len() as u64)?;
                clients.push(Some(client));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).named("accept()"),
        }
    }
}

/// Answer one request; false if the client has gone, or reset the connection.
fn answer(client: &mut TcpStream, buffer: &mut [u8]) -> Result<bool, Failure> {
    let mut head = [0; HEAD];
    match client.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
            return Ok(false);
        }
        Err(error) => return Err(error).named("read(tcp)"),
    }
    let [length, wanted] = [&head[..4], &head[4..]].map(|half| u32::from_le_bytes(half.try_into().unwrap_or_default()));
    // Only ours ask; but a length is a length.
    client.read_exact(&mut buffer[..(length as usize).min(LARGEST)]).named("read(tcp)")?;
    client.write_all(&buffer[..(wanted as usize).min(LARGE)]).named("write(tcp)")?;
    Ok(true)
}

/// Ask in one of several ways, and read the whole answer.
fn ask(client: &mut TcpStream, length: usize, wanted: usize, way: usize) -> Result<(), Failure> {
    let body = vec![1; length];
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&(length as u32).to_le_bytes());
    head[4..].copy_from_slice(&(wanted as u32).to_le_bytes());
    if way.is_multiple_of(2) {
        client.write_all(&head).named("write(tcp)")?;
        client.write_all(&body).named("write(tcp)")?;
    } else {
        let parts = [IoSlice::new(&head), IoSlice::new(&body)];
        let sent = client.write_vectored(&parts).named("writev(tcp)")?;
        client.write_all(&[&head[..], &body].concat()[sent..]).named("write(tcp)")?;
    }
    match way % 4 {
        0 => readable_by_poll(client.as_raw_fd())?,
        1 => readable_by_select(client.as_raw_fd())?,
        2 => _ = client.peek(&mut [0]).named("recv(MSG_PEEK)")?,
        _ => {}
    }
    let mut piece = [0; 1 << 14];
    let mut rest = wanted;
    while rest > 0 {
        let piece = &mut piece[..rest.min(1 << 14)];
        client.read_exact(piece).named("read(tcp)")?;
        rest -= piece.len();
    }
    Ok(())
}

/// Set and read what servers and clients do.
fn options(client: &TcpStream) -> Result<(), Failure> {
    client.set_nodelay(true).named("setsockopt(TCP_NODELAY)")?;
    client.set_read_timeout(Some(Duration::from_secs(10))).named("setsockopt(SO_RCVTIMEO)")?;
    client.peer_addr().named("getpeername()")?;
    client.local_addr().named("getsockname()")?;
    client.take_error().named("getsockopt(SO_ERROR)")?;
    let on: libc::c_int = 1;
    for (level, name) in [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
        (libc::IPPROTO_TCP, libc::TCP_QUICKACK),
    ] {
        let size = size_of_val(&on) as libc::socklen_t;
        // SAFETY: `on` is an int.
        check("setsockopt()", unsafe {
            libc::setsockopt(client.as_raw_fd(), level, name, (&raw const on).cast(), size)
        })?;
    }
    // SAFETY: all bits 0 is a tcp_info, and `size` is its size.
    unsafe {
        let mut info: libc::tcp_info = std::mem::zeroed();
        let mut size = size_of_val(&info) as libc::socklen_t;
        let place = (&raw mut info).cast();
        check("getsockopt(TCP_INFO)", {
            libc::getsockopt(client.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, place, &mut size)
        })?;
    }
    Ok(())
}

/// Try a connection to a port where nobody listens.
fn refused() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").named("bind(127.0.0.1)")?;
    let address = listener.local_addr().named("getsockname()")?;
    drop(listener);
    let result = TcpStream::connect(address).map_or(-1, |_| 0);
    fails_with("connect(closed port)", libc::ECONNREFUSED, result)
}
