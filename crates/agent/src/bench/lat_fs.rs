//! lat_fs: create and delete files.
//!
//! LMBench reports files per second for 0, 1, 4 and 10 kB; here it is the cost of one file, for 0 and 10 kB, the two
//! sizes of its summary.

use crate::measure::{Recorder, Stopwatch};
use crate::params::Params;
use crate::sys::{Failure, Stop, check, fd, file};
use crate::test::{Metric, Param, Test};
use kdyno_proto::{Kind, Lane, Suite};
use std::ffi::{CStr, CString};
use std::os::fd::AsRawFd;

pub static TEST: Test = Test {
    name: "lat_fs",
    suite: Some(Suite::Lmbench),
    description: "create and delete files in a temporary directory",
    params: &[Param {
        name: "files",
        description: "files in the directory at most",
        default: 8,
        in_lane: &[(Lane::Wall, 100)],
        min: 1,
        max: 10_000,
    }],
    metrics: &[
        Metric {
            suffix: "create_0k",
            kind: Kind::Latency,
            description: "create an empty file: open, close",
            model_operations: 8,
            run: |recorder, params| run(recorder, params, 0, Part::Create),
        },
        Metric {
            suffix: "delete_0k",
            kind: Kind::Latency,
            description: "unlink an empty file",
            model_operations: 8,
            run: |recorder, params| run(recorder, params, 0, Part::Delete),
        },
        Metric {
            suffix: "create_10k",
            kind: Kind::Latency,
            description: "create a file of 10 kB: open, write, close",
            model_operations: 8,
            run: |recorder, params| run(recorder, params, 10 << 10, Part::Create),
        },
        Metric {
            suffix: "delete_10k",
            kind: Kind::Latency,
            description: "unlink a file of 10 kB",
            model_operations: 8,
            run: |recorder, params| run(recorder, params, 10 << 10, Part::Delete),
        },
    ],
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Create,
    Delete,
}

fn run(recorder: &Recorder, params: &Params, size: usize, measured: Part) -> Result<(), Stop> {
    let paths: Vec<CString> =
        (0..params.get("files")).map(|i| file::c_path(&recorder.scratch.join(i.to_string()))).collect();
    let content = vec![0x5a_u8; size];
    recorder.measure_parts(|operations, watch| {
        let mut rest = operations as usize;
        while rest > 0 {
            let batch = &paths[..rest.min(paths.len())];
            timed_if(measured == Part::Create, watch, || batch.iter().try_for_each(|path| create(path, &content)))?;
            timed_if(measured == Part::Delete, watch, || batch.iter().try_for_each(|path| delete(path)))?;
            rest -= batch.len();
        }
        Ok(operations)
    })
}

#[inline(always)]
fn timed_if<T>(timed: bool, watch: &mut Stopwatch, body: impl FnOnce() -> T) -> T {
    if timed { watch.time(body) } else { body() }
}

#[inline]
fn create(path: &CStr, content: &[u8]) -> Result<(), Failure> {
    let file = file::open("open(scratch file)", path, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)?;
    fd::write_all("write(scratch file)", file.as_raw_fd(), content)
}

#[inline]
fn delete(path: &CStr) -> Result<(), Failure> {
    // SAFETY: `path` is a C string.
    check("unlink(scratch file)", unsafe { libc::unlink(path.as_ptr()) })?;
    Ok(())
}
