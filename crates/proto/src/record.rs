//! What the agent says, one record a line, in the order in which it happened.

use crate::{Direction, Lane, Phase, Stream, Unit, hex};
use serde::{Deserialize, Serialize};

/// One line of the agent's stream.
///
/// A stream is `hello`, then for each benchmark one `benchmark` followed by its `sample`s and at most one `unsupported`
/// or `broken`, then the job's programs, then `end`. A program is for each of its steps one `step`, its `output`s and one
/// `exited`, and at its end one `left`; if its command is measured, a `benchmark` comes first, and a `sample` after each
/// run that went well. A stream without `end` was cut off.
/// The host computes values; the agent only counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub enum Record {
    /// Who measures, on what.
    Hello {
        /// Version of the agent.
        agent: String,
        /// `uname -r`.
        kernel: String,
        lane: Lane,
        /// QEMU's `-icount shift=`; model lane only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        icount_shift: Option<u8>,
        /// CPUs online.
        cpus: u32,
        /// True when the agent is PID 1.
        init: bool,
    },
    /// A benchmark is about to run.
    Benchmark {
        /// `TEST` or `TEST.METRIC`.
        name: String,
        test: String,
        unit: Unit,
        direction: Direction,
        description: String,
    },
    /// One iteration.
    Sample {
        benchmark: String,
        /// Counts from 0.
        iteration: u32,
        /// Guest instructions (model) or nanoseconds (wall); never 0.
        elapsed: u64,
        /// Operations (latency) or bytes (bandwidth) done in that time; never 0.
        work: u64,
    },
    /// This kernel can't run the benchmark. Not an error: a kernel without CONFIG_INET has no TCP latency.
    Unsupported { benchmark: String, reason: String },
    /// The benchmark could not be finished. Its samples so far must not be used.
    Broken { benchmark: String, reason: String },
    /// A step of a program is about to begin.
    Step {
        program: String,
        phase: Phase,
        /// Of the command, from 0; 0 for the other phases.
        run: u32,
    },
    /// A piece of what a step writes.
    Output {
        stream: Stream,
        #[serde(rename = "hex", with = "hex")]
        data: Vec<u8>,
    },
    /// The step has ended.
    Exited {
        /// Death by signal N is 128 + N, as a shell says it; 124: it took too long, as timeout(1) says it.
        status: u8,
        /// Nanoseconds from its start to its end.
        elapsed: u64,
        /// Nanoseconds of processor time in user code, of all processes that ended meanwhile.
        user: u64,
        /// The same in kernel code.
        system: u64,
    },
    /// The program is over, and nothing of it runs any more.
    Left {
        program: String,
        /// How many of its processes had to be killed.
        processes: u32,
    },
    /// The last record.
    End {
        /// How many records came before this one: proves that the stream was not cut or filtered.
        records: u64,
    },
}
