//! lat_pagefault: fault in pages of a cached file.
//!
//! LMBench touches every page and subtracts the cost of mapping; since Linux 3.15 one fault maps the 64 kB around it
//! (commit 8c6e50b0290c, "mm: introduce vm_ops->map_pages()"), so that would count sixteen touches for one fault. Here
//! one page in each 64 kB is read, so each touch is one fault, and only the touches are timed.

use crate::measure::Recorder;
use crate::params::Param;
use crate::params::Params;
use crate::sys::Stop;
use crate::sys::file::{self, Mapping};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::os::fd::AsRawFd;

pub static TEST: Test = Test {
    name: "lat_pagefault",
    suite: Some(Suite::Lmbench),
    description: "fault in pages of a cached file",
    params: &[Param {
        name: "size_kb",
        description: "kB in the file",
        default: 1024,
        in_real_time: Some(16384),
        min: 64,
        max: 1 << 20,
    }],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Latency,
        description: "read a page of a shared mapping for the first time",
        model_operations: 16,
        run,
    }],
};

/// The kernel's fault_around_bytes, which only debugfs can change.
const FAULT_AROUND: usize = 64 << 10;

fn run(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let size = params.get("size_kb") << 10;
    let cached = file::cached(&file::c_path(&recorder.scratch.join("file")), size)?;
    let _filling = Mapping::fill_before(size)?;
    let mapping = Mapping::shared(cached.as_raw_fd(), size, libc::PROT_READ)?;
    let pages = size / FAULT_AROUND;
    recorder.measure_parts(|faults, watch| {
        let mut rest = faults as usize;
        while rest > 0 {
            let batch = rest.min(pages);
            mapping.forget()?;
            watch.time(|| {
                for page in 0..batch {
                    mapping.peek(page * FAULT_AROUND);
                }
            });
            rest -= batch;
        }
        Ok(faults)
    })
}
