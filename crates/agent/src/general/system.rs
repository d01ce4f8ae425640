//! general_system: small system calls of every kind, and what /proc and devices tell.

use super::file_calls::Things;
use super::load::{self, Named, optional};
use super::mix::Mix;
use super::process_calls;
use super::ready::Descriptors;
use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::{Failure, Stop};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::ptr::null_mut;

pub static TEST: Test = Test {
    name: "general_system",
    suite: Some(Suite::General),
    description: "train: small system calls, /proc, devices",
    params: &[],
    metrics: &[
        Metric {
            suffix: "process",
            kind: Kind::Latency,
            description: "calls about the process itself, and a look into /proc and at devices",
            model_operations: 1,
            run: process,
        },
        Metric {
            suffix: "names",
            kind: Kind::Latency,
            description: "calls on paths and descriptors",
            model_operations: 1,
            run: |recorder: &Recorder, _: &Params| {
                let things = Things::new(recorder.scratch)?;
                load::measure(recorder, |mix| (0..CALLS).try_for_each(|_| optional(things.name_some(mix))))
            },
        },
        Metric {
            suffix: "bytes",
            kind: Kind::Latency,
            description: "reads and writes of every size: files, devices, pipes",
            model_operations: 1,
            run: |recorder: &Recorder, _: &Params| {
                let things = Things::new(recorder.scratch)?;
                load::measure(recorder, |mix| (0..CALLS).try_for_each(|_| optional(things.move_some(mix))))
            },
        },
        Metric {
            suffix: "ready",
            kind: Kind::Latency,
            description: "poll, select and epoll on few and many descriptors",
            model_operations: 1,
            run: |recorder: &Recorder, _: &Params| {
                let descriptors = Descriptors::new(recorder.scratch)?;
                load::measure(recorder, |mix| (0..CALLS / 3).try_for_each(|_| descriptors.ask(mix)))
            },
        },
    ],
};

/// Groups of calls in a round.
const CALLS: usize = 300;

fn process(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    load::measure(recorder, |mix| {
        for _ in 0..CALLS {
            optional(process_calls::some(mix))?;
        }
        proc_and_devices(mix)
    })
}

/// Read files of /proc and devices. A missing file is not a failure: the configuration decides which there are.
fn proc_and_devices(mix: &mut Mix) -> Result<(), Stop> {
    const TEXTS: [&str; 16] = [
        "/proc/self/stat",
        "/proc/self/status",
        "/proc/self/maps",
        "/proc/self/statm",
        "/proc/self/cmdline",
        "/proc/self/mountinfo",
        "/proc/self/limits",
        "/proc/1/stat",
        "/proc/stat",
        "/proc/meminfo",
        "/proc/loadavg",
        "/proc/uptime",
        "/proc/mounts",
        "/proc/net/dev",
        "/proc/net/tcp",
        "/proc/sys/kernel/osrelease",
    ];
    let mut text = Vec::new();
    for _ in 0..4 {
        if let Ok(mut file) = File::open(TEXTS[mix.below(TEXTS.len())]) {
            text.clear();
            file.read_to_end(&mut text).named("read(/proc)")?;
        }
    }
    list(Path::new(["/proc", "/proc/self/fd", "/sys/class", "/dev"][mix.below(4)]))?;
    // SAFETY: a list that is freed with the call for it. A kernel without sockets has none.
    unsafe {
        let mut interfaces = null_mut();
        if libc::getifaddrs(&mut interfaces) == 0 {
            libc::freeifaddrs(interfaces);
        }
    }
    if let Ok(mut random) = File::open("/dev/urandom") {
        random.read_exact(&mut [0; 64]).named("read(/dev/urandom)")?;
    }
    Ok(())
}

fn list(place: &Path) -> Result<(), Failure> {
    let Ok(entries) = std::fs::read_dir(place) else { return Ok(()) };
    for entry in entries {
        // A process may be gone by now.
        _ = entry.named("readdir(/proc)")?.metadata();
    }
    Ok(())
}
