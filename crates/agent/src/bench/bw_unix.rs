//! bw_unix: bytes through a pair of AF_UNIX stream sockets.

use super::round_trip::End;
use super::stream;
use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::{Stop, fd};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};

pub static TEST: Test = Test {
    name: "bw_unix",
    suite: Some(Suite::Lmbench),
    description: "move bytes through an AF_UNIX socket pair between two processes",
    params: &[stream::SIZE_KB],
    metrics: &[Metric {
        suffix: "",
        kind: Kind::Bandwidth,
        description: "read from an AF_UNIX socket what another process writes",
        model_operations: 6,
        run,
    }],
};

fn run(recorder: &Recorder, params: &Params) -> Result<(), Stop> {
    let (near, far) = fd::unix_pair()?;
    stream::transfer(recorder, End::socket(near)?, End::socket(far)?, params.get("size_kb") << 10, "read(unix)")
}
