//! What the host asks of the agent in a guest: one JSON object, at [`JOB_PATH`](crate::JOB_PATH).

use crate::{Counters, Lane, VERSION};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// One boot's worth of work: the tests, then the programs, then the shell.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Must be [`VERSION`].
    pub v: u64,
    pub lane: Lane,
    /// QEMU's `-icount shift=`; needed in a lane with that clock, refused in any other.
    #[serde(default)]
    pub icount_shift: Option<u8>,
    /// Samples per benchmark, at least 1.
    pub iterations: u32,
    #[serde(default)]
    pub tests: Vec<JobTest>,
    /// What to run after the tests, one after the other; their output and status come back as records.
    #[serde(default)]
    pub programs: Vec<Program>,
    /// Give a person a shell on the console at the end.
    #[serde(default)]
    pub interactive: bool,
    #[serde(default)]
    pub channel: Channel,
    /// What is read of the counters of an instrumented kernel, if anything.
    #[serde(default)]
    pub counters: Option<Counters>,
    /// The programs run side by side, again and again, in place of one after the other.
    #[serde(default)]
    pub soak: Option<Soak>,
}

/// How long programs run side by side, and how often the agent says how they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Soak {
    /// From the first set-up on, at least 1. What runs then is ended, and every program torn down.
    pub seconds: u32,
    /// Seconds from one look at memory and programs to the next, at least 1.
    pub every: u32,
}

/// How records leave the guest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Channel {
    /// The virtio-serial port [`PORT`](crate::PORT).
    #[default]
    VirtioPort,
    /// A connection to a host that listens: `10.0.2.2:7000`.
    Tcp { address: String },
    /// A file of the guest, or a device; appended to.
    File { path: String },
}

/// One test with what differs from its defaults.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobTest {
    pub name: String,
    #[serde(default)]
    pub params: BTreeMap<String, u64>,
}

/// One program, with what comes before and after it. Each step is a command and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub name: String,
    /// Whether its steps see the guest's root file system as `/`, in place of the initramfs.
    #[serde(default)]
    pub in_root: bool,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Before the first run.
    #[serde(default)]
    pub set_up: Option<Vec<String>>,
    pub command: Vec<String>,
    /// After each run that went well: what it writes belongs to that run, and what it does is not measured.
    #[serde(default)]
    pub report: Option<Vec<String>>,
    /// After the last run, however the other steps ended.
    #[serde(default)]
    pub tear_down: Option<Vec<String>>,
    /// How often the command is run.
    #[serde(default = "once")]
    pub runs: u32,
    /// How long a step may take.
    #[serde(default)]
    pub seconds: Option<u32>,
    /// What a run of the command is measured as, if it is.
    #[serde(default)]
    pub measured: Option<Measured>,
}

/// A benchmark whose samples are runs of a program's command, each of which is a region of the emulated PMU.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    pub benchmark: String,
    pub description: String,
    /// Operations that one run does.
    pub operations: u64,
}

fn once() -> u32 {
    1
}

impl Program {
    fn has_empty_step(&self) -> bool {
        let steps = [Some(&self.command), self.set_up.as_ref(), self.report.as_ref(), self.tear_down.as_ref()];
        steps.into_iter().flatten().any(Vec::is_empty)
    }
}

/// Why a job is refused.
#[derive(Debug)]
pub enum JobError {
    NotAJob(serde_json::Error),
    Version(u64),
    NeedsShift(Lane),
    TakesNoShift(Lane),
    ShiftTooLarge(u8),
    NoIterations,
    EmptyStep,
    NoRuns,
    TooManyRuns,
    NoOperations,
    NoTime,
}

/// QEMU refuses a larger shift.
pub(crate) const LARGEST_SHIFT: u8 = 10;

/// The emulated PMU is told the number of a run in 16 bits, of which it keeps the last two for itself.
const MOST_MEASURED_RUNS: u32 = 65_000;

impl Job {
    pub fn parse(text: &str) -> Result<Job, JobError> {
        #[derive(Deserialize)]
        struct Peek {
            v: u64,
        }
        // The version first: a job of another version should not be told off for its fields.
        let Peek { v } = serde_json::from_str(text).map_err(JobError::NotAJob)?;
        if v != VERSION {
            return Err(JobError::Version(v));
        }
        let job: Job = serde_json::from_str(text).map_err(JobError::NotAJob)?;
        match (job.lane.is_icount(), job.icount_shift) {
            (true, None) => Err(JobError::NeedsShift(job.lane)),
            (false, Some(_)) => Err(JobError::TakesNoShift(job.lane)),
            (true, Some(shift)) if shift > LARGEST_SHIFT => Err(JobError::ShiftTooLarge(shift)),
            _ if job.iterations == 0 => Err(JobError::NoIterations),
            _ if job.programs.iter().any(Program::has_empty_step) => Err(JobError::EmptyStep),
            _ if job.programs.iter().any(|program| program.runs == 0) => Err(JobError::NoRuns),
            _ if job.measured().any(|(program, _)| program.runs > MOST_MEASURED_RUNS) => Err(JobError::TooManyRuns),
            _ if job.measured().any(|(_, measured)| measured.operations == 0) => Err(JobError::NoOperations),
            _ if job.soak.is_some_and(|soak| soak.seconds == 0 || soak.every == 0) => Err(JobError::NoTime),
            _ => Ok(job),
        }
    }

    fn measured(&self) -> impl Iterator<Item = (&Program, &Measured)> {
        self.programs.iter().filter_map(|program| Some((program, program.measured.as_ref()?)))
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            JobError::NotAJob(error) => write!(f, "not a job: {error}"),
            JobError::Version(v) => {
                write!(f, "version {v}, expected {VERSION}: agent and kdyno must be of one release")
            }
            JobError::NeedsShift(lane) => write!(f, "lane {lane} needs icount_shift"),
            JobError::TakesNoShift(lane) => write!(f, "lane {lane} takes no icount_shift"),
            JobError::ShiftTooLarge(shift) => write!(f, "icount_shift {shift} is more than {LARGEST_SHIFT}"),
            JobError::NoIterations => write!(f, "iterations must be at least 1"),
            JobError::EmptyStep => write!(f, "a step of a program is empty"),
            JobError::NoRuns => write!(f, "runs must be at least 1"),
            JobError::TooManyRuns => write!(f, "a command that is measured has at most {MOST_MEASURED_RUNS} runs"),
            JobError::NoOperations => write!(f, "operations must be at least 1"),
            JobError::NoTime => write!(f, "a soak's seconds must be at least 1"),
        }
    }
}

impl std::error::Error for JobError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_job_is_read() {
        let job = Job::parse(
            r#"{"v":1,"lane":"model","icount_shift":5,"iterations":7,
                "tests":[{"name":"lat_ctx","params":{"processes":2}}],
                "programs":[{"name":"x","command":["sh","-c","true"]}],"interactive":false}"#,
        )
        .unwrap();
        assert_eq!(job.tests[0].params["processes"], 2);
        assert_eq!((job.programs[0].command.len(), job.programs[0].runs), (3, 1));
    }

    #[test]
    fn a_job_may_ask_for_counters() {
        let job = |counters: &str| {
            let text = format!(r#"{{"v":1,"lane":"wall","iterations":1,"counters":{counters}}}"#);
            Job::parse(&text).map(|job| job.counters).map_err(|error| error.to_string())
        };
        assert_eq!(job("null"), Ok(None));
        assert_eq!(job(r#"{"kind":"gcov"}"#), Ok(Some(Counters::Gcov)));
        let memory = job(r#"{"kind":"memory","address":18446744071580000000,"bytes":4096}"#);
        assert_eq!(memory, Ok(Some(Counters::Memory { address: 18446744071580000000, bytes: 4096 })));
        assert!(job(r#"{"kind":"pebs"}"#).unwrap_err().contains("unknown variant `pebs`"));
    }

    #[test]
    fn a_job_may_ask_for_a_soak() {
        let job = Job::parse(r#"{"v":1,"lane":"wall","iterations":1,"soak":{"seconds":3600,"every":10}}"#).unwrap();
        assert_eq!(job.soak, Some(Soak { seconds: 3600, every: 10 }));
    }

    #[test]
    fn a_job_that_contradicts_itself_is_refused() {
        for (text, expected) in [
            (r#"{"v":1,"lane":"model","iterations":7}"#, "needs icount_shift"),
            (r#"{"v":1,"lane":"wall","icount_shift":5,"iterations":7}"#, "takes no icount_shift"),
            (r#"{"v":1,"lane":"model","icount_shift":11,"iterations":7}"#, "more than 10"),
            (r#"{"v":1,"lane":"wall","iterations":0}"#, "at least 1"),
            (
                r#"{"v":1,"lane":"wall","iterations":1,"programs":[{"name":"x","command":[]}]}"#,
                "step of a program is empty",
            ),
            (
                r#"{"v":1,"lane":"wall","iterations":1,"programs":[{"name":"x","command":["a"],"report":[]}]}"#,
                "step of a program is empty",
            ),
            (
                r#"{"v":1,"lane":"wall","iterations":1,"programs":[{"name":"x","command":["a"],"runs":0}]}"#,
                "runs must be",
            ),
            (
                r#"{"v":1,"lane":"wall","iterations":1,"programs":[{"name":"x","command":["a"],"runs":65001,
                    "measured":{"benchmark":"x.y","description":"","operations":1}}]}"#,
                "at most 65000 runs",
            ),
            (
                r#"{"v":1,"lane":"wall","iterations":1,"programs":[{"name":"x","command":["a"],
                    "measured":{"benchmark":"x.y","description":"","operations":0}}]}"#,
                "operations must be",
            ),
            (r#"{"v":1,"lane":"wall","iterations":1,"soak":{"seconds":0,"every":1}}"#, "seconds must be"),
            (r#"{"v":1,"lane":"wall","iterations":1,"soak":{"seconds":1,"every":0}}"#, "seconds must be"),
            (r#"{"v":1,"lane":"wall","iterations":1,"tset":[]}"#, "unknown field `tset`"),
            (r#"{"v":1,"lane":"pm","iterations":1}"#, "unknown lane `pm`, expected one of model, wall, pmu"),
            (r#"{"v":1,"lane":"wall","iterations":1,"tests":[{"name":"x","parms":{}}]}"#, "unknown field `parms`"),
            (r#"{"v":2,"lane":"other"}"#, "version 2, expected 1"),
        ] {
            let error = Job::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
