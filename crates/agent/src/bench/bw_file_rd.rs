//! bw_file_rd: read a file that is in the page cache, and sum what was read.

use crate::measure::Recorder;
use crate::params::Param;
use crate::params::Params;
use crate::sys::{Stop, exactly, file};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::hint::black_box;
use std::os::fd::{AsRawFd, RawFd};

pub static TEST: Test = Test {
    name: "bw_file_rd",
    suite: Some(Suite::Lmbench),
    description: "read a cached file in blocks of 64 kB",
    params: &[Param {
        name: "size_kb",
        description: "kB in the file",
        default: 128,
        in_real_time: Some(8192),
        min: 4,
        max: 1 << 20,
    }],
    metrics: &[
        Metric {
            suffix: "io_only",
            kind: Kind::Bandwidth,
            description: "lseek to the start, read all of the file, sum its words",
            model_operations: 1,
            run: io_only,
        },
        Metric {
            suffix: "open2close",
            kind: Kind::Bandwidth,
            description: "open, read all of the file, sum its words, close",
            model_operations: 1,
            run: open2close,
        },
    ],
};

/// What LMBench reads at a time.
const BLOCK: usize = 64 << 10;

fn io_only(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let size = params.get("size_kb") << 10;
    let cached = file::cached(&file::c_path(&recorder.scratch.join("file")), size)?;
    let mut block = vec![0; BLOCK];
    recorder.measure(|passes| {
        for _ in 0..passes {
            // SAFETY: no pointers.
            exactly("lseek()", 0, unsafe { libc::lseek(cached.as_raw_fd(), 0, libc::SEEK_SET) } as isize)?;
            read_all(cached.as_raw_fd(), size, &mut block)?;
        }
        Ok(passes * size as u64)
    })
}

fn open2close(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let size = params.get("size_kb") << 10;
    let path = file::c_path(&recorder.scratch.join("file"));
    file::cached(&path, size)?;
    let mut block = vec![0; BLOCK];
    recorder.measure(|passes| {
        for _ in 0..passes {
            let opened = file::open("open(scratch file)", &path, libc::O_RDONLY)?;
            read_all(opened.as_raw_fd(), size, &mut block)?;
        }
        Ok(passes * size as u64)
    })
}

#[inline]
fn read_all(file: RawFd, size: usize, block: &mut [u8]) -> Result<(), Stop> {
    let mut rest = size;
    while rest > 0 {
        let part = rest.min(block.len());
        // SAFETY: `block` is writable for `part` bytes.
        exactly("read(scratch file)", part, unsafe { libc::read(file, block.as_mut_ptr().cast(), part) })?;
        black_box(file::sum(&block[..part]));
        rest -= part;
    }
    Ok(())
}
