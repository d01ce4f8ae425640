//! lat_udp: a datagram to another process and back on loopback.

use super::round_trip;
use crate::measure::Recorder;
use crate::params::Param;
use crate::params::Params;
use crate::sys::{Stop, inet};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};

pub static TEST: Test = Test {
    name: "lat_udp",
    suite: Some(Suite::Lmbench),
    description: "send a datagram to another process and back on loopback",
    // The most that fits into an IPv4 packet: 65535 less 20 for its header and 8 for UDP's.
    params: &[Param {
        name: "bytes",
        description: "bytes in the datagram",
        default: 1,
        in_real_time: None,
        min: 1,
        max: 65507,
    }],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Latency,
        description: "round trip of a datagram",
        model_operations: 4,
        run,
    }],
};

fn run(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let (near, far) = inet::udp_pair()?;
    round_trip::datagram(recorder, near, far, params.get("bytes"))
}
