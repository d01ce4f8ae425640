//! lat_select: ask select(2) about many descriptors, all of them ready.
//!
//! As LMBench does, for writing, and with the number of descriptors as select's first argument: the few whose own number
//! is not below that, because others were open before them, are not looked at.

use crate::measure::Recorder;
use crate::params::Param;
use crate::params::Params;
use crate::sys::{Failure, Stop, check, fd, file, inet};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;

pub static TEST: Test = Test {
    name: "lat_select",
    suite: Some(Suite::Lmbench),
    description: "select on many descriptors, without waiting",
    params: &[Param { name: "fds", description: "descriptors", default: 100, in_real_time: None, min: 1, max: 1000 }],
    metrics: &[
        Metric {
            suffix: "files",
            kind: Kind::Latency,
            description: "select for writing on descriptors of a file",
            model_operations: 8,
            run: files,
        },
        Metric {
            suffix: "tcp",
            kind: Kind::Latency,
            description: "select for writing on descriptors of a TCP connection",
            model_operations: 4,
            run: tcp,
        },
    ],
};

fn files(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let file = file::cached(&file::c_path(&recorder.scratch.join("file")), 1)?;
    measure(recorder, file, params.get("fds"))
}

fn tcp(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let (near, _far) = inet::tcp_pair()?;
    measure(recorder, near, params.get("fds"))
}

/// Measure select on `count` duplicates of a descriptor, as LMBench does: the path to each file is what costs.
fn measure(recorder: &Recorder, original: OwnedFd, count: usize) -> Result<(), Stop> {
    let copies = (0..count)
        // SAFETY: no pointers.
        .map(|_| fd::owned("dup()", unsafe { libc::fcntl(original.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) }))
        .collect::<Result<Vec<OwnedFd>, Failure>>()?;
    drop(original);
    let highest = copies.iter().map(AsRawFd::as_raw_fd).max().unwrap_or(0);
    if highest as usize >= libc::FD_SETSIZE {
        return Err(Stop::Broken(format!("descriptor {highest} does not fit into an fd_set: ask for fewer fds")));
    }
    // SAFETY: all bits 0 is an empty set, and every descriptor is below FD_SETSIZE.
    let all = unsafe {
        let mut set: libc::fd_set = std::mem::zeroed();
        copies.iter().for_each(|copy| libc::FD_SET(copy.as_raw_fd(), &mut set));
        set
    };
    let below = count as libc::c_int;
    let expected = copies.iter().filter(|copy| copy.as_raw_fd() < below).count() as libc::c_int;
    recorder.measure(|selects| {
        for _ in 0..selects {
            let mut set = all;
            let mut at_once = libc::timeval { tv_sec: 0, tv_usec: 0 };
            // SAFETY: the set holds `below` bits or more; null means "not asked".
            let ready_count = unsafe { libc::select(below, null_mut(), &mut set, null_mut(), &mut at_once) };
            if check("select()", ready_count)? != expected {
                return Err(Stop::Broken(format!("select() found {ready_count} ready, expected {expected}")));
            }
        }
        Ok(selects)
    })
}
