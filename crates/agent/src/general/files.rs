//! general_files: directories, names and attributes; and contents.

use super::load::{self, Named, fails_with, optional};
use super::mix::Mix;
use crate::params::Params;
use crate::sys::{Failure, Stop, check, fd, file};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::{IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::ptr::null_mut;
use std::time::SystemTime;

pub static TEST: Test = Test {
    name: "general_files",
    suite: Some(Suite::General),
    description: "train: names, attributes and contents of files",
    params: &[],
    metrics: &[
        Metric {
            suffix: "names",
            kind: Kind::Latency,
            description: "fill a directory, look at it and move things about, empty it",
            model_operations: 1,
            run: |recorder, _: &Params| load::measure(recorder, |mix| names(&recorder.scratch.join("names"), mix)),
        },
        Metric {
            suffix: "contents",
            kind: Kind::Latency,
            description: "write, read, cut, copy and lock files",
            model_operations: 1,
            run: |recorder, _: &Params| load::measure(recorder, |mix| contents(recorder.scratch, mix)),
        },
    ],
};

const FILES: usize = 40;

fn names(root: &Path, mix: &mut Mix) -> Result<(), Stop> {
    let directories = ["a", "b", "c/deep/er"].map(|directory| root.join(directory));
    for directory in &directories {
        fs::create_dir_all(directory).named("mkdir(scratch directory)")?;
    }
    let mut all: Vec<_> =
        (0..FILES).map(|i| directories[mix.below(3)].join(format!("file-{i}-{}", mix.next()))).collect();
    for path in &all {
        let mut file = File::create(path).named("open(scratch file)")?;
        if mix.below(3) > 0 {
            file.write_all(&vec![0x5a; mix.size(16384)]).named("write(scratch file)")?;
        }
    }
    mix.shuffle(&mut all);
    for (i, path) in all.iter_mut().enumerate() {
        let name = file::c_path(path);
        match i % 8 {
            0 => {
                let target = directories[mix.below(3)].join(format!("moved-{i}"));
                fs::rename(&*path, &target).named("rename(scratch file)")?;
                *path = target;
            }
            1 => {
                let link = root.join(format!("link-{i}"));
                symlink(&*path, &link).named("symlink(scratch file)")?;
                fs::metadata(&link).named("stat(link)")?;
                fs::read_link(&link).named("readlink(link)")?;
                fs::canonicalize(&link).named("readlink(link)")?;
                fs::remove_file(&link).named("unlink(link)")?;
            }
            2 => {
                let second = root.join(format!("second-{i}"));
                fs::hard_link(&*path, &second).named("link(scratch file)")?;
                fs::rename(&second, &*path).named("rename(link)")?;
                fs::remove_file(second).named("unlink(link)")?;
            }
            3 => fs::set_permissions(&*path, Permissions::from_mode(0o644)).named("chmod(scratch file)")?,
            4 => {
                let file = File::options().write(true).open(&*path).named("open(scratch file)")?;
                let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
                file.set_times(times).named("utimensat(scratch file)")?;
            }
            // SAFETY: C strings.
            5 => unsafe {
                check("access(scratch file)", libc::access(name.as_ptr(), libc::R_OK | libc::W_OK))?;
                let missing = libc::access(c"/tmp/kdyno-missing/file".as_ptr(), libc::F_OK);
                fails_with("access(missing file)", libc::ENOENT, missing.into())?;
            },
            6 => {
                fs::symlink_metadata(&*path).named("lstat(scratch file)")?;
                // SAFETY: C strings; lchown to whom it belongs.
                check("lchown(scratch file)", unsafe { libc::lchown(name.as_ptr(), libc::getuid(), libc::getgid()) })?;
            }
            _ => {
                // SAFETY: a C string.
                let again = unsafe { libc::open(name.as_ptr(), libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC, 0o600) };
                fails_with("open(existing file)", libc::EEXIST, again.into())?;
            }
        }
    }
    optional(watched(root))?;
    let listed = walk(root)?;
    if listed < FILES {
        return Err(Stop::Broken(format!("{listed} of {FILES} files are listed")));
    }
    for path in all.iter().filter(|_| mix.below(2) == 0) {
        fs::remove_file(path).named("unlink(scratch file)")?;
    }
    // The rest goes as rm -r does it.
    Ok(fs::remove_dir_all(root).named("unlink(scratch directory)")?)
}

/// Watch a directory with inotify, where the kernel has it.
fn watched(root: &Path) -> Result<(), Failure> {
    let place = file::c_path(root);
    let path = root.join("watched");
    // SAFETY: no pointers; a C string.
    let watch = unsafe {
        let watch = fd::owned("inotify_init1()", libc::inotify_init1(libc::IN_CLOEXEC))?;
        let events = libc::IN_CREATE | libc::IN_MODIFY | libc::IN_DELETE;
        check("inotify_add_watch()", libc::inotify_add_watch(watch.as_raw_fd(), place.as_ptr(), events))?;
        watch
    };
    fs::write(&path, "changed").named("write(scratch file)")?;
    fs::remove_file(&path).named("unlink(scratch file)")?;
    let mut events_read = [0; 1024];
    File::from(watch).read(&mut events_read).named("read(inotify)")?;
    Ok(())
}

/// Return how many files there are, after looking at each.
fn walk(directory: &Path) -> Result<usize, Failure> {
    let mut count = 0;
    for entry in fs::read_dir(directory).named("readdir(scratch directory)")? {
        let entry = entry.named("readdir(scratch directory)")?;
        let metadata = entry.metadata().named("stat(scratch file)")?;
        count += if metadata.is_dir() { walk(&entry.path())? } else { 1 };
    }
    Ok(count)
}

fn contents(scratch: &Path, mix: &mut Mix) -> Result<(), Stop> {
    let path = scratch.join("contents");
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).named("open(file)")?;
    let block = vec![0x5a; 1 << 16];
    // About 100 kB, in pieces of every size.
    for _ in 0..24 {
        file.write_all(&block[..mix.size(1 << 14)]).named("write(file)")?;
    }
    let end = file.stream_position().named("lseek(file)")? as usize;
    file.seek(SeekFrom::Start(0)).named("lseek(file)")?;
    let mut buffer = vec![0; 1 << 16];
    while file.read(&mut buffer[..1 << (6 + mix.below(11))]).named("read(file)")? > 0 {}
    // Copied and compared files are read in large pieces.
    for _ in 0..3 {
        file.rewind().named("lseek(file)")?;
        while file.read(&mut buffer).named("read(file)")? > 0 {}
    }
    for _ in 0..16 {
        let size = mix.size(4096).min(end);
        let place = mix.below(end - size + 1) as u64;
        file.read_exact_at(&mut buffer[..size], place).named("pread(file)")?;
        file.write_all_at(&buffer[..size], mix.below(end) as u64).named("pwrite(file)")?;
    }
    file.seek(SeekFrom::End(-4000.min(end as i64))).named("lseek(file)")?;
    let (head, tail) = buffer.split_at_mut(700);
    let _ = file.read_vectored(&mut [IoSliceMut::new(head), IoSliceMut::new(&mut tail[..900])]).named("readv(file)")?;
    let _ = file.write_vectored(&[IoSlice::new(&block[..300]), IoSlice::new(&block[..2500])]).named("writev(file)")?;
    file.sync_all().named("fsync(file)")?;
    optional(allocate(&file))?;
    optional(lock(&file))?;
    optional(pass_on(scratch, &file))?;
    file.set_len(mix.below(end) as u64).named("ftruncate(file)")?;
    file.set_len(end as u64 + 10_000).named("ftruncate(file)")?;
    append(&path, mix)?;
    drop(file);
    let copy = scratch.join("copy");
    fs::copy(&path, &copy).named("copy_file_range(file)")?;
    fs::rename(&copy, &path).named("rename(file)")?;
    Ok(fs::remove_file(&path).named("unlink(file)")?)
}

/// Append as to a log: the file is opened for each line.
fn append(path: &Path, mix: &mut Mix) -> Result<(), Failure> {
    for _ in 0..8 {
        let mut log = OpenOptions::new().append(true).open(path).named("open(log)")?;
        log.write_all(&vec![b'.'; mix.size(256)]).named("write(log)")?;
    }
    Ok(())
}

/// Allocate room ahead, and make a hole.
fn allocate(file: &File) -> Result<(), Failure> {
    let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: no pointers.
    unsafe {
        check("fallocate(file)", libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, 1 << 17))?;
        check("fallocate(hole)", libc::fallocate(file.as_raw_fd(), hole, 8192, 16384))?;
    }
    Ok(())
}

/// Take both kinds of locks.
fn lock(file: &File) -> Result<(), Failure> {
    // SAFETY: all bits 0 is a flock from the start to the end; it is one for each fcntl below.
    unsafe {
        check("flock(file)", libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB))?;
        check("flock(file)", libc::flock(file.as_raw_fd(), libc::LOCK_UN))?;
        let mut range: libc::flock = std::mem::zeroed();
        for kind in [libc::F_WRLCK, libc::F_RDLCK, libc::F_UNLCK] {
            range.l_type = kind as libc::c_short;
            (range.l_start, range.l_len) = (100, 200);
            check("fcntl(F_SETLK)", libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const range))?;
        }
        range.l_type = libc::F_WRLCK as libc::c_short;
        check("fcntl(F_GETLK)", libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut range))?;
    }
    Ok(())
}

/// Copy the file's beginning into others, through a pipe and directly.
fn pass_on(scratch: &Path, file: &File) -> Result<(), Failure> {
    const PIECE: usize = 16 << 10;
    let path = scratch.join("passed");
    let other = File::create(&path).named("open(scratch file)")?;
    let (read, write) = fd::pipe()?;
    let mut from = 0;
    // SAFETY: `from` is an offset; null for "where the descriptor is".
    unsafe {
        check("sendfile()", libc::sendfile(other.as_raw_fd(), file.as_raw_fd(), &mut from, PIECE))?;
        let spliced = libc::splice(file.as_raw_fd(), &mut from, write.as_raw_fd(), null_mut(), PIECE, 0);
        let spliced = check("splice(file to pipe)", spliced)? as usize;
        let rest = libc::splice(read.as_raw_fd(), null_mut(), other.as_raw_fd(), null_mut(), spliced, 0);
        check("splice(pipe to file)", rest)?;
    }
    fs::remove_file(path).named("unlink(scratch file)")
}
