//! A chain of processes with pipes between them; eventfd with epoll; a pipe that is full, and one without a reader.

use super::child::Child;
use super::epoll::Epoll;
use super::load::{self, fails_with, optional};
use super::mix::Mix;
use crate::sys::{Failure, Stop, check, fd};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

const MESSAGES: usize = 60;
const LARGEST: usize = 1 << 14;
const EVENTS: usize = 40;

/// Bytes that go through a pipeline, and how many of them are written at once.
const BULK: usize = 8 * BLOCK;
const BLOCK: usize = 40_000;

pub fn round(mix: &mut Mix) -> Result<(), Stop> {
    // Once as ordinary processes, once as those in the background, which never push another aside.
    chain(mix, MESSAGES)?;
    load::schedule(libc::SCHED_BATCH);
    chain(mix, MESSAGES)?;
    load::schedule(libc::SCHED_OTHER);
    bulk()?;
    full_and_broken()?;
    optional(timer())?;
    optional(events())
}

/// Send to the first, which sends to the second, which sends back.
fn chain(mix: &mut Mix, messages: usize) -> Result<(), Stop> {
    let (first_out, first_in) = fd::pipe()?;
    let (second_out, second_in) = fd::pipe()?;
    let (back_out, back_in) = fd::pipe()?;
    let hop = |from: OwnedFd, to: OwnedFd| move || pass_on(from.as_raw_fd(), to.as_raw_fd(), messages);
    let first = Child::spawn(hop(first_out, second_in))?;
    let second = Child::spawn(hop(second_out, back_in))?;
    let mut buffer = [1; LARGEST];
    for _ in 0..messages {
        let message = &mut buffer[..mix.size(LARGEST)];
        fd::write_u64("write(pipe)", first_in.as_raw_fd(), message.len() as u64)?;
        fd::write_all("write(pipe)", first_in.as_raw_fd(), message)?;
        receive(back_out.as_raw_fd(), &mut buffer)?;
    }
    first.wait()?;
    second.wait()
}

fn pass_on(from: RawFd, to: RawFd, messages: usize) -> Result<(), Failure> {
    let mut buffer = [0; LARGEST];
    for _ in 0..messages {
        let message = receive(from, &mut buffer)?;
        fd::write_u64("write(pipe)", to, message.len() as u64)?;
        fd::write_all("write(pipe)", to, message)?;
    }
    Ok(())
}

fn receive(from: RawFd, buffer: &mut [u8]) -> Result<&[u8], Failure> {
    let length = fd::read_u64("read(pipe)", from)? as usize;
    let message = &mut buffer[..length.min(LARGEST)];
    fd::read_exact("read(pipe)", from, message)?;
    Ok(message)
}

/// Send more through a pipeline than a pipe holds, in pieces of another size than those it is read in.
fn bulk() -> Result<(), Stop> {
    let (read, write) = fd::pipe()?;
    let source = Child::spawn(move || {
        let block = [1; BLOCK];
        (0..BULK / BLOCK).try_for_each(|_| fd::write_all("write(pipe)", write.as_raw_fd(), &block))
    })?;
    let mut buffer = [0; 24 << 10];
    let mut rest = BULK;
    while rest > 0 {
        // SAFETY: `buffer` is writable for its length.
        let got = unsafe { libc::read(read.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        rest -= (check("read(pipe)", got)? as usize).clamp(1, rest);
    }
    source.wait()
}

fn full_and_broken() -> Result<(), Failure> {
    let (read, write) = fd::pipe()?;
    let block = [0_u8; 4096];
    // SAFETY: no pointers in fcntl and ioctl's but `waiting`; `block` is readable for its length.
    unsafe {
        check("fcntl(F_SETFL)", libc::fcntl(write.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK))?;
        while libc::write(write.as_raw_fd(), block.as_ptr().cast(), block.len()) > 0 {}
        let full = libc::write(write.as_raw_fd(), block.as_ptr().cast(), block.len());
        fails_with("write(full pipe)", libc::EAGAIN, full as i64)?;
        let mut waiting: libc::c_int = 0;
        check("ioctl(FIONREAD)", libc::ioctl(read.as_raw_fd(), libc::FIONREAD, &raw mut waiting))?;
        drop(read);
        // SIGPIPE is ignored, as Rust's runtime has it.
        let broken = libc::write(write.as_raw_fd(), block.as_ptr().cast(), block.len());
        fails_with("write(broken pipe)", libc::EPIPE, broken as i64)
    }
}

/// Read a timer: timerfd, where the kernel has it.
fn timer() -> Result<(), Failure> {
    const SOON: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
    let often = libc::itimerspec { it_interval: SOON, it_value: SOON };
    // SAFETY: `often` is an itimerspec; null for "the old one is not asked for".
    let timer = unsafe {
        let timer = fd::owned("timerfd_create()", libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC))?;
        check("timerfd_settime()", libc::timerfd_settime(timer.as_raw_fd(), 0, &often, std::ptr::null_mut()))?;
        timer
    };
    (0..3).try_for_each(|_| fd::read_u64("read(timerfd)", timer.as_raw_fd()).map(drop))
}

/// Wait with epoll for a counter that another process adds to.
fn events() -> Result<(), Stop> {
    let counter = || {
        // SAFETY: no pointers.
        fd::owned("eventfd()", unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })
    };
    let (request, reply) = (counter()?, counter()?);
    let epoll = Epoll::new()?;
    epoll.watch(request.as_raw_fd(), 1)?;
    epoll.watch_both(request.as_raw_fd(), 1)?;
    epoll.wait(0)?;
    epoll.forget(request.as_raw_fd())?;
    epoll.watch(reply.as_raw_fd(), 2)?;
    let (to, from) = (request.as_raw_fd(), reply.as_raw_fd());
    let other = Child::spawn(|| {
        for _ in 0..EVENTS {
            let got = fd::read_u64("read(eventfd)", to)?;
            fd::write_u64("write(eventfd)", from, got)?;
        }
        Ok(())
    })?;
    for _ in 0..EVENTS {
        fd::write_u64("write(eventfd)", to, 1)?;
        while !epoll.wait(-1)?.contains(&2) {}
        fd::read_u64("read(eventfd)", from)?;
    }
    other.wait()
}
