//! Whole reads and writes on raw descriptors, and the pairs that two processes talk through.

use super::{Failure, check};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Fill `buffer`, however many reads it takes.
#[inline]
pub fn read_exact(call: &'static str, fd: RawFd, buffer: &mut [u8]) -> Result<(), Failure> {
    let mut done = 0;
    while done < buffer.len() {
        let rest = &mut buffer[done..];
        // SAFETY: `rest` is writable for its length.
        let got = unsafe { libc::read(fd, rest.as_mut_ptr().cast(), rest.len()) };
        if got <= 0 {
            return Err(Failure::transfer(call, rest.len(), got));
        }
        done += got as usize;
    }
    Ok(())
}

/// Write all of `buffer`, however many writes it takes.
#[inline]
pub fn write_all(call: &'static str, fd: RawFd, buffer: &[u8]) -> Result<(), Failure> {
    let mut done = 0;
    while done < buffer.len() {
        let rest = &buffer[done..];
        // SAFETY: `rest` is readable for its length.
        let put = unsafe { libc::write(fd, rest.as_ptr().cast(), rest.len()) };
        if put <= 0 {
            return Err(Failure::transfer(call, rest.len(), put));
        }
        done += put as usize;
    }
    Ok(())
}

/// Wait until the other side closes, and refuses anything else that comes.
#[inline]
pub fn read_end(call: &'static str, fd: RawFd) -> Result<(), Failure> {
    let mut byte = 0_u8;
    // SAFETY: `byte` is writable for its size.
    match unsafe { libc::read(fd, (&raw mut byte).cast(), 1) } {
        0 => Ok(()),
        result => Err(Failure::transfer(call, 0, result)),
    }
}

pub fn read_u64(call: &'static str, fd: RawFd) -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    read_exact(call, fd, &mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

pub fn write_u64(call: &'static str, fd: RawFd, value: u64) -> Result<(), Failure> {
    write_all(call, fd, &value.to_ne_bytes())
}

/// Return a descriptor that a call has just returned, or the call's failure.
pub fn owned(call: &'static str, fd: RawFd) -> Result<OwnedFd, Failure> {
    let fd = check(call, fd)?;
    // SAFETY: the kernel has just given it to us; nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Return a pipe: (read end, write end).
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Failure> {
    let mut ends = [-1; 2];
    // SAFETY: `ends` has room for two descriptors.
    check("pipe()", unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    Ok((owned("pipe()", ends[0])?, owned("pipe()", ends[1])?))
}

/// Return two connected AF_UNIX stream sockets.
pub fn unix_pair() -> Result<(OwnedFd, OwnedFd), Failure> {
    let call = "socketpair(AF_UNIX, SOCK_STREAM)";
    let mut ends = [-1; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: `ends` has room for two descriptors.
    check(call, unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
    Ok((owned(call, ends[0])?, owned(call, ends[1])?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn what_goes_into_a_pipe_comes_out() {
        let (read, write) = pipe().unwrap();
        write_u64("write(pipe)", write.as_raw_fd(), 42).unwrap();
        assert_eq!(read_u64("read(pipe)", read.as_raw_fd()).unwrap(), 42);
    }

    #[test]
    fn a_pipe_without_a_writer_ends_the_read() {
        let (read, write) = pipe().unwrap();
        drop(write);
        let failure = read_u64("read(pipe)", read.as_raw_fd()).unwrap_err();
        assert_eq!(failure, Failure::Short { call: "read(pipe)", wanted: 8, got: 0 });
    }
}
