//! Small system calls on files: of tmpfs, of devices, of pipes; and on their names.

use super::load::fails_with;
use super::mix::Mix;
use crate::sys::{Failure, check, fd, file};
use std::ffi::{CStr, CString};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// What the calls are made on.
pub struct Things {
    file: OwnedFd,
    null: OwnedFd,
    zero: OwnedFd,
    pipe: (OwnedFd, OwnedFd),
    path: CString,
    link: CString,
}

/// Bytes in the file.
const SIZE: usize = 80_000;

/// A few calls that belong together.
type Calls = fn(&Things, &mut Mix) -> Result<(), Failure>;

impl Things {
    /// Make a file and a link to it in a directory.
    pub fn new(directory: &Path) -> Result<Things, Failure> {
        let path = file::c_path(&directory.join("file"));
        let link = file::c_path(&directory.join("link"));
        // SAFETY: C strings.
        check("symlink(scratch file)", unsafe { libc::symlink(path.as_ptr(), link.as_ptr()) })?;
        Ok(Things {
            file: file::cached(&path, SIZE)?,
            null: file::open("open(/dev/null)", c"/dev/null", libc::O_RDWR)?,
            zero: file::open("open(/dev/zero)", c"/dev/zero", libc::O_RDONLY)?,
            pipe: fd::pipe()?,
            path,
            link,
        })
    }

    /// Call some of those that ask for names and attributes.
    pub fn name_some(&self, mix: &mut Mix) -> Result<(), Failure> {
        const ALL: [Calls; 4] = [status, paths, opens, descriptors];
        ALL[mix.below(ALL.len())](self, mix)
    }

    /// Call some of those that move bytes.
    pub fn move_some(&self, mix: &mut Mix) -> Result<(), Failure> {
        const ALL: [Calls; 2] = [reads, writes];
        ALL[mix.below(ALL.len())](self, mix)
    }
}

fn status(things: &Things, mix: &mut Mix) -> Result<(), Failure> {
    const PATHS: [&CStr; 5] = [c"/", c"/dev/null", c"/tmp/.", c"/proc/self/exe", c"/bin/../tmp"];
    // SAFETY: C strings and structures of the right types; a path that is missing costs nothing.
    unsafe {
        let mut buffer: libc::stat = zeroed();
        libc::stat(PATHS[mix.below(PATHS.len())].as_ptr(), &mut buffer);
        check("stat(scratch file)", libc::stat(things.path.as_ptr(), &mut buffer))?;
        check("lstat(link)", libc::lstat(things.link.as_ptr(), &mut buffer))?;
        check("fstat(scratch file)", libc::fstat(things.file.as_raw_fd(), &mut buffer))?;
        check("fstat(pipe)", libc::fstat(things.pipe.0.as_raw_fd(), &mut buffer))?;
        check("statfs(scratch file)", libc::statfs(things.path.as_ptr(), &mut zeroed()))?;
        let at = libc::AT_FDCWD;
        let mut more = zeroed();
        check("statx()", libc::statx(at, things.link.as_ptr(), 0, libc::STATX_BASIC_STATS, &mut more))?;
    }
    Ok(())
}

fn paths(things: &Things, mix: &mut Mix) -> Result<(), Failure> {
    const MISSING: [&CStr; 4] = [c"/lib/none.so", c"/usr/share/none", c"none", c"/dev/null/none"];
    let missing = MISSING[mix.below(MISSING.len())].as_ptr();
    // SAFETY: C strings.
    unsafe {
        libc::access(missing, libc::F_OK);
        libc::open(missing, libc::O_RDONLY | libc::O_CLOEXEC);
        libc::unlink(missing);
        check("access(scratch file)", libc::access(things.path.as_ptr(), libc::R_OK))?;
        check("chdir(.)", libc::chdir(c".".as_ptr()))?;
        check("chmod(scratch file)", libc::fchmod(things.file.as_raw_fd(), 0o600))?;
    }
    Ok(())
}

fn opens(things: &Things, mix: &mut Mix) -> Result<(), Failure> {
    let flags = [libc::O_RDONLY, libc::O_RDWR, libc::O_WRONLY | libc::O_APPEND][mix.below(3)];
    drop(file::open("open(scratch file)", &things.path, flags)?);
    drop(file::open("open(link)", &things.link, libc::O_RDONLY)?);
    drop(file::open("open(/dev/null)", c"/dev/null", libc::O_RDWR)?);
    drop(file::open("open(/tmp)", c"/tmp", libc::O_RDONLY | libc::O_DIRECTORY)?);
    Ok(())
}

fn descriptors(things: &Things, _: &mut Mix) -> Result<(), Failure> {
    let file = things.file.as_raw_fd();
    // SAFETY: no pointers; the copies are closed.
    unsafe {
        let copy = fd::owned("dup()", libc::dup(file))?;
        check("dup2()", libc::dup2(file, copy.as_raw_fd()))?;
        let high = fd::owned("fcntl(F_DUPFD)", libc::fcntl(file, libc::F_DUPFD_CLOEXEC, 40))?;
        check("fcntl(F_GETFL)", libc::fcntl(high.as_raw_fd(), libc::F_GETFL))?;
        check("fcntl(F_SETFL)", libc::fcntl(high.as_raw_fd(), libc::F_SETFL, libc::O_APPEND))?;
        check("fcntl(F_SETFL)", libc::fcntl(high.as_raw_fd(), libc::F_SETFL, 0))?;
        check("fcntl(F_GETFD)", libc::fcntl(high.as_raw_fd(), libc::F_GETFD))?;
        check("fcntl(F_SETFD)", libc::fcntl(high.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC))?;
        let tty = libc::isatty(things.null.as_raw_fd());
        fails_with("ioctl(TCGETS)", libc::ENOTTY, i64::from(tty) - 1)?;
    }
    drop(fd::pipe()?);
    Ok(())
}

/// Read as programs do: most reads are small, and some take all there is.
fn reads(things: &Things, mix: &mut Mix) -> Result<(), Failure> {
    let mut buffer = [0_u8; 1 << 16];
    let size = mix.size(buffer.len());
    let (place, file) = (buffer.as_mut_ptr().cast(), things.file.as_raw_fd());
    // SAFETY: `buffer` is writable for its length, which `size` is not above.
    unsafe {
        check("read(/dev/zero)", libc::read(things.zero.as_raw_fd(), place, size.min(256)))?;
        check("lseek()", libc::lseek(file, mix.below(SIZE / 2) as libc::off_t, libc::SEEK_SET))?;
        check("read(scratch file)", libc::read(file, place, size))?;
        check("read(scratch file)", libc::read(file, place, size.min(4096)))?;
        check("pread(scratch file)", libc::pread(file, place, size, mix.below(SIZE) as libc::off_t))?;
        check("read(/dev/null)", libc::read(things.null.as_raw_fd(), place, size))?;
    }
    Ok(())
}

fn writes(things: &Things, mix: &mut Mix) -> Result<(), Failure> {
    let mut buffer = [1_u8; 4096];
    let size = mix.size(buffer.len());
    fd::write_all("write(/dev/null)", things.null.as_raw_fd(), &buffer[..size])?;
    fd::write_all("write(pipe)", things.pipe.1.as_raw_fd(), &buffer[..size])?;
    fd::read_exact("read(pipe)", things.pipe.0.as_raw_fd(), &mut buffer[..size])?;
    let place = mix.below(SIZE) as libc::off_t;
    // SAFETY: `buffer` is readable for `size`.
    let put = unsafe { libc::pwrite(things.file.as_raw_fd(), buffer.as_ptr().cast(), size, place) };
    check("pwrite(scratch file)", put)?;
    Ok(())
}
