//! Another kernel in place of the running one, without firmware: kexec_file_load(2) and reboot(2).

use crate::sys::{Failure, check};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};

/// KEXEC_FILE_NO_INITRAMFS of include/uapi/linux/kexec.h.
const NO_INITRAMFS: libc::c_ulong = 4;
/// FIFREEZE of include/uapi/linux/fs.h: _IOWR('X', 119, int).
const FREEZE: libc::c_ulong = 0xc004_5877;

/// Load a kernel, which `start` then starts. Nothing on a disk changes.
pub fn load(kernel: &str, initrd: Option<&str>, words: &str) -> Result<(), String> {
    let open = |path: &str| File::open(path).map_err(|error| format!("{path}: {error}"));
    let kernel_file = open(kernel)?;
    let initrd_file = initrd.map(open).transpose()?;
    let words = CString::new(words).map_err(|_| "the command line contains a zero byte")?;
    let flags = if initrd_file.is_some() { 0 } else { NO_INITRAMFS };
    let initrd_number: RawFd = initrd_file.as_ref().map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: both files are open, and `words` is readable for its length, which includes the last zero byte.
    let result = unsafe {
        libc::syscall(
            libc::SYS_kexec_file_load,
            kernel_file.as_raw_fd(),
            initrd_number,
            words.as_bytes_with_nul().len(),
            words.as_ptr(),
            flags,
        )
    };
    check("kexec_file_load()", result).map(drop).map_err(reason)
}

/// Start the loaded kernel. The root file system is frozen first: what was written to it is then on its disk, whole.
///
/// Only root of the initial user namespace comes further than the first call. If the kernel doesn't start, the machine
/// restarts by its firmware: everything else has been stopped before, so that nobody could reach it any more.
pub fn start() -> Result<(), String> {
    let root = File::open("/").map_err(|error| format!("/: {error}"))?;
    // SAFETY: sync(2) takes nothing; FIFREEZE takes an open directory and ignores its argument.
    unsafe {
        libc::sync();
        libc::ioctl(root.as_raw_fd(), FREEZE, 0);
    }
    // SAFETY: reboot(2) takes magic numbers and a command; these have no argument.
    let started = check("reboot(LINUX_REBOOT_CMD_KEXEC)", unsafe { libc::reboot(libc::LINUX_REBOOT_CMD_KEXEC) });
    // SAFETY: as above.
    unsafe { libc::reboot(libc::LINUX_REBOOT_CMD_RESTART) };
    started.map(drop).map_err(reason)
}

fn reason(failure: Failure) -> String {
    failure.to_string()
}
