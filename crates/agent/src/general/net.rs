//! general_net: loopback traffic of the families that a configuration has.

use super::load;
use super::{net_tcp, net_udp, net_unix};
use crate::measure::Recorder;
use crate::params::Params;
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};

pub static TEST: Test = Test {
    name: "general_net",
    suite: Some(Suite::General),
    description: "train: sockets over loopback",
    params: &[],
    metrics: &[
        Metric {
            suffix: "tcp",
            kind: Kind::Latency,
            description: "a server with clients that come, ask and go, and one that fetches much",
            model_operations: 1,
            run: |recorder: &Recorder, _: &Params| load::measure(recorder, net_tcp::round),
        },
        Metric {
            suffix: "udp",
            kind: Kind::Latency,
            description: "datagrams to a server and back, of every size",
            model_operations: 1,
            run: |recorder: &Recorder, _: &Params| load::measure(recorder, net_udp::round),
        },
        Metric {
            suffix: "unix",
            kind: Kind::Latency,
            description: "AF_UNIX sockets of every type, with and without names; descriptors that are passed",
            model_operations: 1,
            run: |recorder: &Recorder, _: &Params| {
                load::measure(recorder, |mix| net_unix::round(&recorder.scratch.join("socket"), mix))
            },
        },
    ],
};
