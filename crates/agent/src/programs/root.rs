//! The guest's root file system: a squashfs from the initramfs, below a layer in memory that takes what is written.
//! Each program finds the layer empty: what one wrote, or filled, is nothing to the next.

use crate::sys::{Failure, check, file};
use kdyno_proto::ROOT_PATH;
use std::ffi::{CStr, CString};
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::ptr::null;

const BASE: &CStr = c"/kdyno/base";
const LAYER: &CStr = c"/kdyno/layer";
const ROOT: &CStr = c"/kdyno/root";
const OVERLAY: &CStr = c"lowerdir=/kdyno/base,upperdir=/kdyno/layer/upper,workdir=/kdyno/layer/work";

/// What a program expects to find of the system: the same as the agent's.
const SHARED: &[&CStr] = &[c"proc", c"sys", c"dev"];

/// Where programs write to memory directly: directories of the layer's tmpfs, so that one limit holds for all of it.
const IN_MEMORY: &[(&CStr, &CStr, u32)] =
    &[(c"/kdyno/layer/tmp", c"/kdyno/root/tmp", 0o1777), (c"/kdyno/layer/run", c"/kdyno/root/run", 0o755)];

/// What udev and packages' scripts make on a whole system, and programs take for granted: links in /dev.
const LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];
const VAR_TMP: &str = "/kdyno/root/var/tmp";

/// kdyno's own program, where the guest has it, and where programs in the root find it.
const LOADS: (&CStr, &CStr) = (c"/bin/kdyno-loads", c"/kdyno/root/usr/local/bin/kdyno-loads");

/// include/uapi/linux/loop.h
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82_u32 as libc::Ioctl;
const LOOP_SET_FD: libc::Ioctl = 0x4C00_u32 as libc::Ioctl;
const LOOP_CONTROL: (u32, u32) = (10, 237);
const LOOP_MAJOR: u32 = 7;

/// Mount what never changes.
pub fn mount_base() -> Result<(), String> {
    for directory in [BASE, LAYER, ROOT] {
        make_directory(text(directory))?;
    }
    let device = loop_device().map_err(|failure| format!("{failure} (kernel without CONFIG_BLK_DEV_LOOP?)"))?;
    put(&device, BASE, c"squashfs", libc::MS_RDONLY, None, "CONFIG_SQUASHFS with CONFIG_SQUASHFS_LZ4")
}

/// Mount the base below an empty layer, in place of one that is there; return where.
pub fn mount_afresh() -> Result<&'static str, String> {
    for mounted in [ROOT, LAYER] {
        // SAFETY: a C string. With it goes what is mounted below; that nothing is mounted yet is not a failure.
        unsafe { libc::umount2(mounted.as_ptr(), libc::MNT_DETACH) };
    }
    put(c"layer", LAYER, c"tmpfs", 0, None, "CONFIG_TMPFS")?;
    for directory in ["upper", "work"] {
        make_directory(&format!("{}/{directory}", text(LAYER)))?;
    }
    put(c"root", ROOT, c"overlay", 0, Some(OVERLAY), "CONFIG_OVERLAY_FS")?;
    for name in SHARED {
        share(name)?;
    }
    for (directory, target, mode) in IN_MEMORY {
        make_directory(text(directory))?;
        make_directory(text(target))?;
        set_mode(text(directory), *mode)?;
        bind(directory, target)?;
    }
    share_loads()?;
    make_links();
    make_directory(VAR_TMP)?;
    set_mode(VAR_TMP, 0o1777)?;
    Ok(text(ROOT))
}

/// Mount a directory of the agent's at the same place below the root.
fn share(name: &CStr) -> Result<(), String> {
    let target = format!("{}/{}", text(ROOT), text(name));
    make_directory(&target)?;
    let (from, to) = (format!("/{}", text(name)), target);
    let (from, to) = (CString::new(from).expect("our own table"), CString::new(to).expect("our own table"));
    bind(&from, &to)
}

/// Make links; one that is there already is left alone.
fn make_links() {
    for (link, target) in LINKS {
        let _ = symlink(target, link);
    }
}

/// Mount the loads over an empty file, which costs no copy.
fn share_loads() -> Result<(), String> {
    let (from, to) = LOADS;
    if !Path::new(text(from)).exists() {
        return Ok(());
    }
    let target = Path::new(text(to));
    let directory = target.parent().expect("our own constant");
    let made = fs::create_dir_all(directory).and_then(|()| fs::File::create(target));
    made.map_err(|error| format!("{}: {error}", text(to)))?;
    bind(from, to)
}

fn bind(from: &CStr, to: &CStr) -> Result<(), String> {
    // SAFETY: C strings; null for what a bind mount doesn't need.
    let result = unsafe { libc::mount(from.as_ptr(), to.as_ptr(), null(), libc::MS_BIND | libc::MS_REC, null()) };
    check("mount(MS_BIND)", result).map(drop).map_err(|failure| format!("{}: {failure}", text(to)))
}

fn put(
    what: &CStr,
    target: &CStr,
    kind: &CStr,
    flags: libc::c_ulong,
    options: Option<&CStr>,
    needs: &str,
) -> Result<(), String> {
    let options = options.map_or(null(), |options| options.as_ptr().cast());
    // SAFETY: C strings, and null for no options.
    let result = unsafe { libc::mount(what.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options) };
    check("mount()", result)
        .map(drop)
        .map_err(|failure| format!("{} at {}: {failure} (kernel without {needs}?)", text(kind), text(target)))
}

/// Return a block device whose content is the file.
fn loop_device() -> Result<CString, Failure> {
    make_node(c"/dev/loop-control", libc::S_IFCHR, LOOP_CONTROL);
    let control = file::open("open(/dev/loop-control)", c"/dev/loop-control", libc::O_RDWR)?;
    // SAFETY: no pointers.
    let number = check("ioctl(LOOP_CTL_GET_FREE)", unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) })?;
    let path = CString::new(format!("/dev/loop{number}")).expect("a number holds no NUL");
    make_node(&path, libc::S_IFBLK, (LOOP_MAJOR, number as u32));
    let device = file::open("open(/dev/loop)", &path, libc::O_RDONLY)?;
    let backing = CString::new(ROOT_PATH).expect("our own constant");
    let backing = file::open("open(root.squashfs)", &backing, libc::O_RDONLY)?;
    // SAFETY: no pointers; both descriptors are open.
    check("ioctl(LOOP_SET_FD)", unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_FD, backing.as_raw_fd()) })?;
    Ok(path)
}

/// Make a node for a kernel without CONFIG_DEVTMPFS; one that is there already is left alone.
fn make_node(path: &CStr, kind: libc::mode_t, (major, minor): (u32, u32)) {
    // SAFETY: a C string.
    unsafe { libc::mknod(path.as_ptr(), kind | 0o600, libc::makedev(major, minor)) };
}

fn make_directory(path: &str) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|error| format!("{path}: {error}"))
}

fn set_mode(path: &str, mode: u32) -> Result<(), String> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(|error| format!("{path}: {error}"))
}

fn text(path: &CStr) -> &str {
    path.to_str().expect("our own constants are ASCII")
}
