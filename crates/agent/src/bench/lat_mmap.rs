//! lat_mmap: map a cached file, touch some of it, unmap it.
//!
//! As LMBench does: the first tenth of the file is written to, a byte in every 16 kB; or, with `sparse` (its -r), all of
//! it, a byte in every 160 kB.

use crate::measure::Recorder;
use crate::params::Param;
use crate::params::Params;
use crate::sys::Stop;
use crate::sys::file::{self, Mapping};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::os::fd::AsRawFd;

pub static TEST: Test = Test {
    name: "lat_mmap",
    suite: Some(Suite::Lmbench),
    description: "map a cached file, write to some of its pages, unmap it",
    params: &[
        Param {
            name: "size_kb",
            description: "kB to map",
            default: 512,
            in_real_time: Some(4096),
            min: 4,
            max: 1 << 20,
        },
        Param {
            name: "sparse",
            description: "1: touch all of it, ten times as far apart",
            default: 0,
            in_real_time: None,
            min: 0,
            max: 1,
        },
    ],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Latency,
        description: "mmap, write one byte in every 16 kB of the first tenth, munmap",
        model_operations: 4,
        run,
    }],
};

/// LMBench's numbers: bytes from one touch to the next, and what part of the file is touched.
const STRIDE: usize = 16 << 10;
const PART: usize = 10;

fn run(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let size = params.get("size_kb") << 10;
    let (end, stride) = if params.get("sparse") == 1 { (size, PART * STRIDE) } else { (size / PART, STRIDE) };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let cached = file::cached(&file::c_path(&recorder.scratch.join("file")), size)?;
    let _filling = Mapping::fill_before(size)?;
    recorder.measure(|mappings| {
        for _ in 0..mappings {
            let mapping = Mapping::shared(cached.as_raw_fd(), size, access)?;
            for offset in (0..end).step_by(stride) {
                mapping.poke(offset, 1);
            }
        }
        Ok(mappings)
    })
}
