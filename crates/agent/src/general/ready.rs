//! Who is ready? Asked as servers and terminals do: by poll, select and epoll, about few descriptors and many, of files,
//! pipes and sockets.

use super::epoll::Epoll;
use super::load::{Named, optional};
use super::mix::Mix;
use crate::sys::{Failure, Stop, check, fd, file};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr::null_mut;

/// Descriptors at most.
const MOST: usize = 128;

/// Descriptors of several kinds, in changing order.
pub struct Descriptors(Vec<OwnedFd>);

impl Descriptors {
    pub fn new(scratch: &Path) -> Result<Descriptors, Failure> {
        let file = file::cached(&file::c_path(&scratch.join("ready")), 1)?;
        let (read, write) = fd::pipe()?;
        let mut kinds = vec![file, read, write];
        // Not every kernel has sockets.
        if let Ok((near, far)) = fd::unix_pair() {
            kinds.extend([near, far]);
        }
        if let Ok((near, far)) = crate::sys::inet::tcp_pair() {
            kinds.extend([near, far]);
        }
        if let Ok(socket) = UdpSocket::bind("127.0.0.1:0") {
            kinds.push(socket.into());
        }
        let copy = |i: usize| kinds[i % kinds.len()].try_clone().named("fcntl(F_DUPFD)");
        Ok(Descriptors((0..MOST).map(copy).collect::<Result<_, _>>()?))
    }

    /// Ask once, in one of the ways, about a few or about many.
    pub fn ask(&self, mix: &mut Mix) -> Result<(), Stop> {
        let first = mix.below(MOST);
        let descriptors: Vec<RawFd> = self.0[first..].iter().take(mix.size(MOST)).map(AsRawFd::as_raw_fd).collect();
        let interest = [libc::POLLIN, libc::POLLOUT, libc::POLLIN | libc::POLLOUT][mix.below(3)];
        match mix.below(5) {
            0 | 1 => Ok(poll(&descriptors, interest)?),
            2 | 3 => Ok(select(&descriptors, interest)?),
            _ => optional(epoll(&descriptors[..descriptors.len().min(16)], interest)),
        }
    }
}

fn poll(descriptors: &[RawFd], events: libc::c_short) -> Result<(), Failure> {
    let mut polled: Vec<_> = descriptors.iter().map(|&fd| libc::pollfd { fd, events, revents: 0 }).collect();
    // SAFETY: as many as said.
    check("poll()", unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0) })?;
    Ok(())
}

fn select(descriptors: &[RawFd], interest: libc::c_short) -> Result<(), Failure> {
    let mut at_once = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let fits = |fd: &&RawFd| (**fd as usize) < libc::FD_SETSIZE;
    let end = descriptors.iter().filter(fits).max().map_or(0, |highest| highest + 1);
    // SAFETY: all bits 0 is an empty set, and each descriptor that is put in is below its size.
    unsafe {
        let mut read: libc::fd_set = std::mem::zeroed();
        descriptors.iter().filter(fits).for_each(|&fd| libc::FD_SET(fd, &mut read));
        let mut write = read;
        let if_watched = |event, set| if interest & event == 0 { null_mut() } else { set };
        let (read, write) = (if_watched(libc::POLLIN, &raw mut read), if_watched(libc::POLLOUT, &raw mut write));
        check("select()", libc::select(end, read, write, null_mut(), &mut at_once))?;
    }
    Ok(())
}

fn epoll(descriptors: &[RawFd], interest: libc::c_short) -> Result<(), Failure> {
    let epoll = Epoll::new()?;
    for (key, &fd) in descriptors.iter().enumerate() {
        match epoll.watch(fd, key as u64) {
            // A file is always ready, and can't be watched.
            Err(Failure::Errno { errno: libc::EPERM, .. }) => {}
            Ok(()) if interest & libc::POLLOUT != 0 => epoll.watch_both(fd, key as u64)?,
            result => result?,
        }
    }
    epoll.wait(0)?;
    Ok(())
}

/// Wait until a socket can be read from, by poll.
pub fn readable_by_poll(socket: RawFd) -> Result<(), Failure> {
    let mut polled = libc::pollfd { fd: socket, events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd, as said.
    check("poll()", unsafe { libc::poll(&mut polled, 1, 10_000) })?;
    Ok(())
}

/// Wait until the descriptor is readable, by select.
pub fn readable_by_select(socket: RawFd) -> Result<(), Failure> {
    assert!((socket as usize) < libc::FD_SETSIZE);
    let mut patience = libc::timeval { tv_sec: 10, tv_usec: 0 };
    // SAFETY: all bits 0 is an empty set, and the descriptor is below its size; null for "not asked".
    check("select()", unsafe {
        let mut watched: libc::fd_set = std::mem::zeroed();
        libc::FD_SET(socket, &mut watched);
        libc::select(socket + 1, &mut watched, null_mut(), null_mut(), &mut patience)
    })?;
    Ok(())
}

/// Return an address of this host and any port: of IPv6 sometimes, where that exists.
pub fn loopback(mix: &mut Mix) -> &'static str {
    const SIX: &str = "[::1]:0";
    let six = mix.below(3) == 0 && UdpSocket::bind(SIX).is_ok();
    if six { SIX } else { "127.0.0.1:0" }
}
