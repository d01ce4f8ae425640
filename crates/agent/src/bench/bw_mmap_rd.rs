//! bw_mmap_rd: sum a cached file through a mapping.
//!
//! LMBench's `mmap_only`, which sums a mapping that is already there, is left out: no kernel code runs in it.

use crate::measure::Recorder;
use crate::params::Param;
use crate::params::Params;
use crate::sys::Stop;
use crate::sys::file::{self, Mapping};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::hint::black_box;
use std::os::fd::AsRawFd;

pub static TEST: Test = Test {
    name: "bw_mmap_rd",
    suite: Some(Suite::Lmbench),
    description: "sum the words of a cached file through a shared mapping",
    params: &[Param {
        name: "size_kb",
        description: "kB in the file",
        default: 128,
        in_real_time: Some(8192),
        min: 4,
        max: 1 << 20,
    }],
    metrics: &[Metric {
        suffix: "open2close",
        kind: Kind::Bandwidth,
        description: "open, map, sum with the page faults that takes, unmap, close",
        model_operations: 1,
        run: open2close,
    }],
};

fn open2close(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let size = params.get("size_kb") << 10;
    let path = file::c_path(&recorder.scratch.join("file"));
    file::cached(&path, size)?;
    let _filling = Mapping::fill_before(size)?;
    recorder.measure(|passes| {
        for _ in 0..passes {
            let opened = file::open("open(scratch file)", &path, libc::O_RDONLY)?;
            let mapping = Mapping::shared(opened.as_raw_fd(), size, libc::PROT_READ)?;
            black_box(file::sum(black_box(mapping.bytes())));
        }
        Ok(passes * size as u64)
    })
}
