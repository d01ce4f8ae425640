//! general_ipc: processes and threads that wait for each other.

use super::{load, pipes, processes, signals, threads};
use crate::measure::Recorder;
use crate::params::Params;
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};

pub static TEST: Test = Test {
    name: "general_ipc",
    suite: Some(Suite::General),
    description: "train: pipes, signals, threads, processes",
    params: &[],
    metrics: &[
        Metric {
            suffix: "pipes",
            kind: Kind::Latency,
            description: "a chain of processes with pipes between them, messages of every size",
            model_operations: 1,
            run: |recorder: &Recorder, _: &Params| load::measure(recorder, pipes::round),
        },
        Metric {
            suffix: "signals",
            kind: Kind::Latency,
            description: "signals of every kind: caught, blocked, awaited, ignored, of timers, deadly",
            model_operations: 1,
            run: |recorder: &Recorder, _: &Params| load::measure(recorder, |_| signals::round()),
        },
        Metric {
            suffix: "threads",
            kind: Kind::Latency,
            description: "threads that share locks, queues and barriers",
            model_operations: 1,
            run: |recorder: &Recorder, _: &Params| load::measure(recorder, |_| threads::round()),
        },
        Metric {
            suffix: "processes",
            kind: Kind::Latency,
            description: "processes that make others, end in many ways and are waited for",
            model_operations: 1,
            run: |recorder: &Recorder, _: &Params| load::measure(recorder, processes::round),
        },
    ],
};
