//! lat_tcp: a message to another process and back over TCP on loopback.

use super::round_trip::{self, Calls, End};
use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::{Stop, inet};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};

pub static TEST: Test = Test {
    name: "lat_tcp",
    suite: Some(Suite::Lmbench),
    description: "send a message to another process and back over TCP on loopback",
    params: &[round_trip::BYTES],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Latency,
        description: "round trip of a message over a TCP connection",
        model_operations: 4,
        run,
    }],
};

fn run(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let (near, far) = inet::tcp_pair()?;
    let calls = &Calls { read: "read(tcp)", write: "write(tcp)" };
    round_trip::stream(recorder, End::socket(near)?, End::socket(far)?, params.get("bytes"), calls)
}
