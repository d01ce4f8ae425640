//! bw_pipe: bytes through a pipe from one process to another.

use super::round_trip::End;
use super::stream;
use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::{Stop, fd};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};

pub static TEST: Test = Test {
    name: "bw_pipe",
    suite: Some(Suite::Lmbench),
    description: "move bytes through a pipe between two processes",
    params: &[stream::SIZE_KB],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Bandwidth,
        description: "read from a pipe what another process writes",
        model_operations: 6,
        run,
    }],
};

fn run(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let (data_out, data_in) = fd::pipe()?;
    let (request_out, request_in) = fd::pipe()?;
    let near = End { from: data_out, to: request_in };
    let far = End { from: request_out, to: data_in };
    stream::transfer(recorder, near, far, params.get("size_kb") << 10, "read(pipe)")
}
