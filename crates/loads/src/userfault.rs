//! Faults that a program serves itself (userfaultfd): each page that is missing is one message, and gets what we say.

use crate::failure::{self, Failure};
use nix::errno::Errno;
use nix::libc;
use std::ffi::c_void;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

/// <linux/userfaultfd.h>
mod abi {
    pub const USER_MODE_ONLY: i32 = 1;
    pub const API: u64 = 0xaa;
    pub const REGISTER_MISSING: u64 = 1;
    pub const EVENT_PAGEFAULT: u8 = 0x12;
    pub const MESSAGE: usize = 32;
    /// Where in a message the address is.
    pub const ADDRESS: std::ops::Range<usize> = 16..24;

    /// api, features, ioctls
    pub type Api = [u64; 3];
    /// start, length, mode, ioctls
    pub type Register = [u64; 4];
    /// to, from, length, mode, bytes copied
    pub type Copy = [u64; 5];

    pub const IO_API: u64 = read_write(0x3f, size_of::<Api>());
    pub const IO_REGISTER: u64 = read_write(0, size_of::<Register>());
    pub const IO_COPY: u64 = read_write(3, size_of::<Copy>());

    const fn read_write(number: u64, size: usize) -> u64 {
        3 << 30 | (size as u64) << 16 | API << 8 | number
    }
}

/// Milliseconds after which it is looked whether a fault can still come.
const PATIENCE: i32 = 50;

/// Register a range of memory in which nothing is present, and let `touch` touch all of it. Each page gets what
/// `content` makes of its number when it is first touched. How many pages that were; None where this user may not serve
/// faults, or where the kernel can't.
pub fn serve(
    start: NonNull<c_void>,
    bytes: usize,
    page: usize,
    content: impl Fn(usize) -> u64 + Sync,
    touch: impl FnOnce(),
) -> Result<Option<usize>, Failure> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | abi::USER_MODE_ONLY;
    // SAFETY: makes a file descriptor, and touches no memory.
    let mut file = match Errno::result(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) }) {
        // SAFETY: a new descriptor that is nobody else's.
        Ok(descriptor) => unsafe { std::fs::File::from_raw_fd(descriptor as RawFd) },
        Err(Errno::ENOSYS | Errno::EPERM | Errno::EINVAL) => return Ok(None),
        Err(errno) => return Err(failure::call_failure("serve page faults", errno)),
    };
    let descriptor = file.as_raw_fd();
    let first = start.as_ptr() as u64;
    let mut api: abi::Api = [abi::API, 0, 0];
    control(descriptor, abi::IO_API, &mut api)?;
    let mut register: abi::Register = [first, bytes as u64, abi::REGISTER_MISSING, 0];
    control(descriptor, abi::IO_REGISTER, &mut register)?;
    let (is_over, is_ready) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut served = 0;
            let mut filled = vec![0_u64; page / 8];
            is_ready.store(true, Ordering::Release);
            while let Some(address) = next(&mut file, &is_over)? {
                let number = (address - first) as usize / page;
                filled.fill(content(number));
                let mut copy: abi::Copy = [first + (number * page) as u64, filled.as_ptr() as u64, page as u64, 0, 0];
                control(descriptor, abi::IO_COPY, &mut copy)?;
                served += 1;
            }
            Ok(served)
        });
        // Its stack may be where the next mapping goes, but it is not part of the range.
        while !is_ready.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        touch();
        is_over.store(true, Ordering::Release);
        server.join().expect("the server does not panic").map(Some)
    })
}

fn control<const N: usize>(descriptor: RawFd, request: u64, argument: &mut [u64; N]) -> Result<(), Failure> {
    // SAFETY: the request's size is that of the argument; what memory it names is registered, or is a page of ours.
    let status = unsafe { libc::ioctl(descriptor, request as _, argument.as_mut_ptr()) };
    Errno::result(status).map(drop).map_err(|errno| failure::call_failure("serve page faults", errno))
}

/// Return the address of the next fault; None when all is over.
fn next(file: &mut std::fs::File, is_over: &AtomicBool) -> Result<Option<u64>, Failure> {
    loop {
        let mut message = [0_u8; abi::MESSAGE];
        match file.read(&mut message) {
            Ok(_) if message[0] == abi::EVENT_PAGEFAULT => {
                let address = message[abi::ADDRESS].try_into().expect("eight bytes");
                return Ok(Some(u64::from_ne_bytes(address)));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if is_over.load(Ordering::Acquire) {
                    return Ok(None);
                }
                let mut poll_request = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: one descriptor, which is open.
                unsafe { libc::poll(&raw mut poll_request, 1, PATIENCE) };
            }
            Err(error) => return Err(failure::io_failure("wait for a page fault", &error)),
        }
    }
}
