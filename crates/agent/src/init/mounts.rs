//! The file systems and device nodes that benchmarks and commands expect. A kernel may lack any of them; what then
//! can't run says so itself, so nothing here fails.

use std::ffi::{CStr, CString};
use std::fs;
use std::ptr::null;

/// Where, and which file system.
const MOUNTS: &[(&CStr, &CStr)] = &[
    (c"/proc", c"proc"),
    (c"/sys", c"sysfs"),
    (c"/dev", c"devtmpfs"),
    (c"/dev/pts", c"devpts"),
    (c"/dev/shm", c"tmpfs"),
    (c"/tmp", c"tmpfs"),
    (c"/run", c"tmpfs"),
];

/// Device nodes for a kernel without CONFIG_DEVTMPFS: path, major, minor.
const NODES: &[(&CStr, u32, u32)] = &[
    (c"/dev/null", 1, 3),
    (c"/dev/zero", 1, 5),
    (c"/dev/full", 1, 7),
    (c"/dev/random", 1, 8),
    (c"/dev/urandom", 1, 9),
    (c"/dev/tty", 5, 0),
    (c"/dev/console", 5, 1),
    (c"/dev/ttyS0", 4, 64),
];

pub fn mount_all() {
    for (target, kind) in MOUNTS {
        // Most are there already; the others live in the initramfs, or in one of those mounted before.
        let _ = fs::create_dir_all(target.to_str().expect("our own table is ASCII"));
        // SAFETY: C strings; null for "no options".
        unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, null()) };
    }
    for &(path, major, minor) in NODES {
        make_node(path, major, minor);
    }
}

/// Make a character device; one that is already there is left alone.
pub fn make_node(path: &CStr, major: u32, minor: u32) {
    // SAFETY: `path` is a C string.
    unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR | 0o666, libc::makedev(major, minor)) };
}

/// Make a character device from its number in sysfs: "MAJOR:MINOR".
pub fn make_node_from_sysfs(path: &CString, numbers: &str) {
    let parse = |(major, minor): (&str, &str)| Some((major.parse().ok()?, minor.parse().ok()?));
    if let Some((major, minor)) = numbers.trim().split_once(':').and_then(parse) {
        make_node(path, major, minor);
    }
}
