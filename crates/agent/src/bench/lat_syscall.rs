//! lat_syscall: system calls that do almost nothing.

use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::{Stop, check, exactly, file};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::ffi::CString;
use std::hint::black_box;
use std::os::fd::AsRawFd;

pub static TEST: Test = Test {
    name: "lat_syscall",
    suite: Some(Suite::Lmbench),
    description: "system calls that do almost nothing",
    params: &[],
    metrics: &[
        latency("null", "getppid", 200, null),
        latency("read", "read one byte from /dev/zero", 100, read),
        latency("write", "write one byte to /dev/null", 100, write),
        latency("stat", "stat a file by its path", 32, stat),
        latency("fstat", "fstat an open file", 100, fstat),
        latency("open_close", "open a file for reading and close it", 25, open_close),
    ],
};

const fn latency(
    suffix: &'static str,
    description: &'static str,
    model_operations: u64,
    run: fn(&Recorder, &Params) -> Result<(), Stop>,
) -> Metric {
    Metric { suffix, kind: Kind::Latency, description, model_operations, run }
}

fn null(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    recorder.measure(|calls| {
        for _ in 0..calls {
            // SAFETY: no pointers. Raw, because a C library may remember the answer.
            black_box(unsafe { libc::syscall(libc::SYS_getppid) });
        }
        Ok(calls)
    })
}

fn read(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let zero = file::open("open(/dev/zero)", c"/dev/zero", libc::O_RDONLY)?;
    let mut byte = 0_u8;
    recorder.measure(|calls| {
        for _ in 0..calls {
            // SAFETY: `byte` is writable.
            exactly("read(/dev/zero)", 1, unsafe { libc::read(zero.as_raw_fd(), (&raw mut byte).cast(), 1) })?;
        }
        Ok(calls)
    })
}

fn write(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let null = file::open("open(/dev/null)", c"/dev/null", libc::O_WRONLY)?;
    let byte = 0_u8;
    recorder.measure(|calls| {
        for _ in 0..calls {
            // SAFETY: `byte` is readable.
            exactly("write(/dev/null)", 1, unsafe { libc::write(null.as_raw_fd(), (&raw const byte).cast(), 1) })?;
        }
        Ok(calls)
    })
}

fn a_file(recorder: &Recorder) -> Result<CString, Stop> {
    let path = file::c_path(&recorder.scratch.join("file"));
    file::cached(&path, 1)?;
    Ok(path)
}

fn stat(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let path = a_file(recorder)?;
    // SAFETY: all bits 0 is a stat.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    recorder.measure(|calls| {
        for _ in 0..calls {
            // SAFETY: `path` is a C string, `found` is writable.
            check("stat()", unsafe { libc::stat(path.as_ptr(), &mut status) })?;
        }
        Ok(calls)
    })
}

fn fstat(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let opened = file::open("open(scratch file)", &a_file(recorder)?, libc::O_RDONLY)?;
    // SAFETY: all bits 0 is a stat.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    recorder.measure(|calls| {
        for _ in 0..calls {
            // SAFETY: `found` is writable.
            check("fstat()", unsafe { libc::fstat(opened.as_raw_fd(), &mut status) })?;
        }
        Ok(calls)
    })
}

fn open_close(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let path = a_file(recorder)?;
    recorder.measure(|calls| {
        for _ in 0..calls {
            // SAFETY: `path` is a C string.
            let opened = check("open()", unsafe { libc::open(path.as_ptr(), libc::O_RDONLY) })?;
            // SAFETY: no pointers; opened above.
            check("close()", unsafe { libc::close(opened) })?;
        }
        Ok(calls)
    })
}
