//! lat_ctx: switch between processes that pass a token around a ring of pipes.
//!
//! LMBench subtracts the cost of passing the token through a pipe within one process, and of summing the array; here
//! nothing is subtracted: a hop is one write, one switch, one read, and the sum. So a sample is what ran between two
//! readings of the clock, for the emulated PMU, profiles and `explain` too; and it has the noise of one measurement.

use crate::measure::Recorder;
use crate::params::Param;
use crate::params::Params;
use crate::sys::peer::Peer;
use crate::sys::{Failure, Stop, fd, file};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::hint::black_box;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

pub static TEST: Test = Test {
    name: "lat_ctx",
    suite: Some(Suite::Lmbench),
    description: "switch between processes in a ring of pipes",
    params: &[
        Param {
            name: "processes",
            description: "processes in the ring",
            default: 2,
            in_real_time: None,
            min: 2,
            max: 96,
        },
        Param {
            name: "size_kb",
            description: "kB that each sums per hop",
            default: 0,
            in_real_time: None,
            min: 0,
            max: 16384,
        },
    ],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Latency,
        description: "pass a token to the next process",
        model_operations: 12,
        run,
    }],
};

/// An int, as LMBench passes around.
const TOKEN: [u8; 4] = [0; 4];

fn run(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let (processes, size) = (params.get("processes"), params.get("size_kb") << 10);
    let pipes = (0..processes).map(|_| fd::pipe()).collect::<Result<Vec<_>, Failure>>()?;
    // Process i reads from pipe i and writes to pipe i + 1; we are process 0.
    let ends = |i: usize| (pipes[i].0.as_raw_fd(), pipes[(i + 1) % processes].1.as_raw_fd());
    let mut peers = Vec::with_capacity(processes - 1);
    for i in 1..processes {
        let (from, to) = ends(i);
        peers.push(Peer::spawn(move || {
            let array = vec![1_u8; size];
            loop {
                hop(from, to, &array)?;
            }
        })?);
    }
    let (from, to) = ends(0);
    let array = vec![1_u8; size];
    let own: &[(OwnedFd, OwnedFd)] = &pipes;
    recorder.measure(|rounds| {
        for _ in 0..rounds {
            // The token is not in the ring between iterations, so here the write comes first.
            fd::write_all("write(pipe)", to, &TOKEN)?;
            fd::read_exact("read(pipe)", from, &mut { TOKEN })?;
            black_box(file::sum(&array));
        }
        Ok(rounds * own.len() as u64)
    })
}

#[inline]
fn hop(from: RawFd, to: RawFd, array: &[u8]) -> Result<(), Failure> {
    fd::read_exact("read(pipe)", from, &mut { TOKEN })?;
    black_box(file::sum(array));
    fd::write_all("write(pipe)", to, &TOKEN)
}
