//! lat_pipe: a byte to another process and back through two pipes.

use super::round_trip::{self, Calls, End};
use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::{Stop, fd};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};

pub static TEST: Test = Test {
    name: "lat_pipe",
    suite: Some(Suite::Lmbench),
    description: "send one byte to another process and back through two pipes",
    params: &[],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Latency,
        description: "round trip of one byte through two pipes",
        model_operations: 12,
        run,
    }],
};

fn run(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let (there_out, there_in) = fd::pipe()?;
    let (back_out, back_in) = fd::pipe()?;
    let near = End { from: back_out, to: there_in };
    let far = End { from: there_out, to: back_in };
    round_trip::stream(recorder, near, far, 1, &Calls { read: "read(pipe)", write: "write(pipe)" })
}
