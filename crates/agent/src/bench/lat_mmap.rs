//! lat_mmap: map a cached file, touch some of it, unmap it.

use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::Stop;
use crate::sys::file::{self, Mapping, PAGE};
use crate::test::{Metric, Param, Test};
use kdyno_proto::{Kind, Lane, Suite};
use std::os::fd::AsRawFd;

pub static TEST: Test = Test {
    name: "lat_mmap",
    suite: Some(Suite::Lmbench),
    description: "map a cached file, write to every tenth page, unmap it",
    params: &[Param {
        name: "size_kb",
        description: "kB to map",
        default: 512,
        in_lane: &[(Lane::Wall, 4096)],
        min: 4,
        max: 1 << 20,
    }],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Latency,
        description: "mmap, write one byte to every tenth page, munmap",
        model_operations: 2,
        run,
    }],
};

/// LMBench's stride, in pages.
const STRIDE: usize = 10;

fn run(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let size = params.get("size_kb") << 10;
    let cached = file::cached(&file::c_path(&recorder.scratch.join("file")), size)?;
    recorder.measure(|mappings| {
        for _ in 0..mappings {
            let mapping = Mapping::shared(cached.as_raw_fd(), size)?;
            for offset in (0..size).step_by(STRIDE * PAGE) {
                mapping.poke(offset, 1);
            }
        }
        Ok(mappings)
    })
}
