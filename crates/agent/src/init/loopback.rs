//! Brings up `lo`; the kernel gives it 127.0.0.1/8 when it comes up.

use crate::sys::fd;

/// Bring the loopback interface up. Without CONFIG_INET there is nothing to bring up; the benchmarks that need it say
/// so.
pub fn up() {
    // SAFETY: no pointers.
    let socket =
        fd::owned("socket()", unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) });
    let Ok(socket) = socket else { return };
    // SAFETY: all bits 0 is an ifreq without a name; the name below is shorter than its field, and the kernel reads
    // no more than an ifreq.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
            *place = *byte as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&socket), libc::SIOCSIFFLAGS as _, &raw const request);
    }
}
