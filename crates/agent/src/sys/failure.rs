//! What a failed system call means for a benchmark: this kernel can't, or something is wrong.

use super::errno;
use std::fmt;

/// A system call that did not do what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    Errno { call: &'static str, errno: i32 },
    Short { call: &'static str, wanted: usize, got: usize },
}

/// Why a benchmark ends without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// This kernel, or this root file system, lacks what it takes.
    Unsupported(String),
    Broken(String),
}

/// Return the result of a call that says -1 for failure.
#[inline(always)]
pub fn check<T: PartialOrd + Default>(call: &'static str, result: T) -> Result<T, Failure> {
    if result < T::default() { Err(Failure::last(call)) } else { Ok(result) }
}

/// Return the result of a read or write that must be whole.
#[inline(always)]
pub fn exactly(call: &'static str, wanted: usize, result: isize) -> Result<(), Failure> {
    if result == wanted as isize { Ok(()) } else { Err(Failure::transfer(call, wanted, result)) }
}

/// Failures that mean "not in this kernel": prefix of the call, error, what to look for. The first match counts.
const MISSING: &[(&str, &[i32], &str)] = &[
    ("socket", &[libc::ENOSYS], "kernel without CONFIG_NET?"),
    ("socket(AF_INET", &[libc::EAFNOSUPPORT, libc::EPROTONOSUPPORT], "kernel without CONFIG_INET?"),
    ("socketpair(AF_UNIX", &[libc::EAFNOSUPPORT, libc::EPROTONOSUPPORT], "kernel without CONFIG_UNIX?"),
    ("bind(127.0.0.1)", &[libc::EADDRNOTAVAIL], "no loopback interface, or it is down"),
    ("connect(127.0.0.1)", &[libc::ENETUNREACH, libc::ENETDOWN], "no loopback interface, or it is down"),
    ("open(/dev/", &[libc::ENOENT, libc::ENXIO, libc::ENODEV], "kernel without CONFIG_DEVTMPFS?"),
    ("execve(/bin/sh)", &[libc::ENOENT, libc::EACCES], "no /bin/sh in the root file system"),
    ("execve(/bin/busybox)", &[libc::ENOENT, libc::EACCES], "no /bin/busybox in the root file system"),
    ("mmap(file)", &[libc::ENODEV, libc::ENOSYS], "kernel without CONFIG_MMU?"),
    ("fcntl(F_SETLK)", &[libc::EINVAL], "kernel without CONFIG_FILE_LOCKING?"),
    ("fallocate(", &[libc::EOPNOTSUPP], "not in this file system"),
    ("", &[libc::ENOSYS], "not in this kernel"),
];

impl Failure {
    #[cold]
    pub fn last(call: &'static str) -> Failure {
        Failure::Errno { call, errno: errno::last() }
    }

    #[cold]
    pub fn transfer(call: &'static str, wanted: usize, result: isize) -> Failure {
        match usize::try_from(result) {
            Ok(got) => Failure::Short { call, wanted, got },
            Err(_) => Failure::last(call),
        }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        let Failure::Errno { call, errno } = failure else { return Stop::Broken(failure.to_string()) };
        let missing = MISSING.iter().find(|(prefix, errnos, _)| call.starts_with(prefix) && errnos.contains(&errno));
        match missing {
            Some((_, _, hint)) => Stop::Unsupported(format!("{failure} ({hint})")),
            None => Stop::Broken(failure.to_string()),
        }
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Failure::Errno { call, errno } => write!(f, "{call}: {}", errno::name(*errno)),
            Failure::Short { call, wanted, got: 0 } => write!(f, "{call}: the other side has gone, wanted {wanted} B"),
            Failure::Short { call, wanted, got } => write!(f, "{call}: {got} of {wanted} B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_tcp_is_unsupported_and_the_option_is_named() {
        let failure = Failure::Errno { call: "socket(AF_INET, SOCK_STREAM)", errno: libc::EAFNOSUPPORT };
        let expected = "socket(AF_INET, SOCK_STREAM): EAFNOSUPPORT (kernel without CONFIG_INET?)";
        assert_eq!(Stop::from(failure), Stop::Unsupported(expected.into()));
    }

    #[test]
    fn a_kernel_without_sockets_is_told_from_one_without_tcp() {
        let failure = Failure::Errno { call: "socket(AF_INET, SOCK_STREAM)", errno: libc::ENOSYS };
        assert!(matches!(Stop::from(failure), Stop::Unsupported(reason) if reason.contains("CONFIG_NET?")));
    }

    #[test]
    fn running_out_of_memory_is_broken_not_unsupported() {
        let failure = Failure::Errno { call: "fork()", errno: libc::ENOMEM };
        assert_eq!(Stop::from(failure), Stop::Broken("fork(): ENOMEM".into()));
    }

    #[test]
    fn a_peer_that_has_gone_is_said_so() {
        assert_eq!(exactly("read(pipe)", 1, 1), Ok(()));
        let reason = exactly("read(pipe)", 1, 0).unwrap_err().to_string();
        assert_eq!(reason, "read(pipe): the other side has gone, wanted 1 B");
    }
}
