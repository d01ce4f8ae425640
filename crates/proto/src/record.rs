//! What the agent says, one record a line, in the order in which it happened.

use crate::{Direction, Lane, Phase, Progress, Stream, hex};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line of the agent's stream.
///
/// A stream is `hello`, then for each benchmark one `benchmark` followed by its `sample`s and at most one `unsupported`
/// or `broken`, then the job's programs, then `end`. A program is for each of its steps one `step`, its `output`s and one
/// `exited`, and at its end one `left`; if its command is measured, a `benchmark` comes first, and a `sample` after each
/// run that went well, before its report. In a soak programs run side by side: now and then there is one `memory`, and one `tally` for each
/// program, and between them `failed` as it happens. A stream without `end` was cut off.
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
        /// What the kernel says of indirect target selection (CVE-2024-28956), if it knows of that. Where it aligns
        /// branches and returns, their costs depend on their addresses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        indirect_target_selection: Option<String>,
        /// Tasks that run beside the agent in a guest, after some seconds of waiting; absent if there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        busy_tasks: Option<u32>,
    },
    /// A benchmark is about to run.
    Benchmark {
        /// `TEST` or `TEST.METRIC`.
        name: String,
        test: String,
        unit: String,
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
        /// The number of the run of the command, or of the run that is reported on, from 0; 0 for the other phases.
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
        /// Nanoseconds of all processors in user code, whoever ran it, by the first line of /proc/stat; 0 if nobody says.
        busy_user: u64,
        /// The same in kernel code, interrupts included.
        busy_system: u64,
    },
    /// The program is over, and nothing of it runs any more.
    Left {
        program: String,
        /// How many of its processes had to be killed.
        processes: u32,
    },
    /// A step of a soak's program failed. Only the first of each program are told; its tally has all.
    Failed {
        program: String,
        phase: Phase,
        /// Rounds that the program had begun before this one.
        round: u64,
        /// The status as in `exited`.
        status: u8,
        /// Nanoseconds from its start to its end.
        elapsed: u64,
        /// The end of what it wrote.
        #[serde(rename = "hex", with = "hex")]
        tail: Vec<u8>,
    },
    /// What a program of a soak has done since its beginning.
    Tally {
        program: String,
        /// Its command, and its report if it has one, came to their end, with status 0.
        rounds: u64,
        /// One of these, or its set-up, did not.
        failures: u64,
        /// Nanoseconds that the commands of all good rounds took together.
        elapsed: u64,
        /// Nanoseconds of the longest of them.
        longest: u64,
        progress: Progress,
    },
    /// A look at the kernel's own account of a soak's guest.
    Memory {
        /// Nanoseconds since the soak began.
        elapsed: u64,
        /// No program of the soak runs, and caches were given back: what is left is what the kernel keeps.
        at_rest: bool,
        /// Fields of /proc/meminfo.
        kb: BTreeMap<String, u64>,
        /// The tasks of /proc/loadavg: processes and threads, those of the kernel among them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tasks: Option<u64>,
        /// The open files of /proc/sys/fs/file-nr.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<u64>,
        /// The taint of /proc/sys/kernel/tainted: bits for what has happened to the kernel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tainted: Option<u64>,
    },
    /// The last record.
    End {
        /// How many records came before this one: proves that the stream was not cut or filtered.
        records: u64,
    },
}
