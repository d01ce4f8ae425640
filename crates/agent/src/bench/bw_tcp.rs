//! bw_tcp: bytes over a TCP connection on loopback.

use super::round_trip::End;
use super::stream;
use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::{Stop, inet};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::os::fd::AsRawFd;

pub static TEST: Test = Test {
    name: "bw_tcp",
    suite: Some(Suite::Lmbench),
    description: "move bytes over TCP on loopback between two processes",
    params: &[stream::SIZE_KB],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Bandwidth,
        description: "read from a TCP socket what another process writes",
        model_operations: 6,
        run,
    }],
};

/// What LMBench asks for.
const BUFFERS: libc::c_int = 1 << 20;

fn run(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let (near, far) = inet::tcp_pair()?;
    inet::fix_buffers(near.as_raw_fd(), BUFFERS)?;
    inet::fix_buffers(far.as_raw_fd(), BUFFERS)?;
    stream::transfer(recorder, End::socket(near)?, End::socket(far)?, params.get("size_kb") << 10, "read(tcp)")
}
