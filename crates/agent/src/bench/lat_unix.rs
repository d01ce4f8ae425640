//! lat_unix: a message to another process and back through AF_UNIX sockets.

use super::round_trip::{self, Calls, End};
use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::{Stop, fd};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};

pub static TEST: Test = Test {
    name: "lat_unix",
    suite: Some(Suite::Lmbench),
    description: "send a message to another process and back through an AF_UNIX socket pair",
    params: &[round_trip::BYTES],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Latency,
        description: "round trip of a message through an AF_UNIX stream socket pair",
        model_operations: 8,
        run,
    }],
};

fn run(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let (near, far) = fd::unix_pair()?;
    let calls = &Calls { read: "read(unix)", write: "write(unix)" };
    round_trip::stream(recorder, End::socket(near)?, End::socket(far)?, params.get("bytes"), calls)
}
