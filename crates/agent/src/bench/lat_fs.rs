//! lat_fs: create and delete files.
//!
//! As LMBench does: the names are new in each iteration, up to a hundred in a directory, and gone afterwards, directory
//! and all. LMBench reports files per second for 0, 1, 4 and 10 kB; here it is the cost of one file, for 0 and 10 kB, the
//! two sizes of its summary. What is deleted is created before, in the same iteration and between the same two ticks: so
//! fewer files are.

use crate::measure::{Recorder, Stopwatch};
use crate::params::Param;
use crate::params::Params;
use crate::sys::{Failure, Stop, check, fd, file};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::ffi::{CStr, CString};
use std::os::fd::AsRawFd;
use std::path::Path;

pub static TEST: Test = Test {
    name: "lat_fs",
    suite: Some(Suite::Lmbench),
    description: "create and delete files in a temporary directory",
    params: &[Param {
        name: "files",
        description: "files in a directory at most",
        default: 100,
        in_real_time: None,
        min: 1,
        max: 10_000,
    }],
    metrics: &[
        Metric {
            suffix: "create_0k",
            kind: Kind::Latency,
            description: "create an empty file: open, close",
            model_operations: 32,
            run: |recorder, params| run(recorder, params, 0, Part::Create),
        },
        Metric {
            suffix: "delete_0k",
            kind: Kind::Latency,
            description: "unlink an empty file",
            model_operations: 16,
            run: |recorder, params| run(recorder, params, 0, Part::Delete),
        },
        Metric {
            suffix: "create_10k",
            kind: Kind::Latency,
            description: "create a file of 10 kB: open, write, close",
            model_operations: 16,
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
    let most = params.get("files");
    let content = vec![0x5a_u8; size];
    let mut directories = 0_u64;
    recorder.measure_parts(|operations, watch| {
        let mut batches = Vec::new();
        let mut rest = operations as usize;
        while rest > 0 {
            batches.push(Batch::new(recorder.scratch, directories, rest.min(most))?);
            directories += 1;
            rest -= rest.min(most);
        }
        let all = || batches.iter().flat_map(|batch| &batch.files);
        timed_if(measured == Part::Create, watch, || all().try_for_each(|path| create(path, &content)))?;
        timed_if(measured == Part::Delete, watch, || all().try_for_each(|path| delete(path)))?;
        batches.iter().try_for_each(Batch::remove)?;
        Ok(operations)
    })
}

/// A new directory, and names in it.
struct Batch {
    directory: CString,
    files: Vec<CString>,
}

impl Batch {
    fn new(scratch: &Path, number: u64, files: usize) -> Result<Batch, Failure> {
        let path = scratch.join(number.to_string());
        let directory = file::c_path(&path);
        // SAFETY: a C string.
        check("mkdir(scratch directory)", unsafe { libc::mkdir(directory.as_ptr(), 0o700) })?;
        Ok(Batch { directory, files: (0..files).map(|i| file::c_path(&path.join(i.to_string()))).collect() })
    }

    fn remove(&self) -> Result<(), Failure> {
        // SAFETY: a C string.
        check("rmdir(scratch directory)", unsafe { libc::rmdir(self.directory.as_ptr()) })?;
        Ok(())
    }
}

#[inline(always)]
fn timed_if<T>(timed: bool, watch: &mut Stopwatch, body: impl FnOnce() -> T) -> T {
    if timed { watch.time(body) } else { body() }
}

#[inline]
fn create(path: &CStr, content: &[u8]) -> Result<(), Failure> {
    let file = file::open("open(scratch file)", path, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC)?;
    fd::write_all("write(scratch file)", file.as_raw_fd(), content)
}

#[inline]
fn delete(path: &CStr) -> Result<(), Failure> {
    // SAFETY: `path` is a C string.
    check("unlink(scratch file)", unsafe { libc::unlink(path.as_ptr()) })?;
    Ok(())
}
