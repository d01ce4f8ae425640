//! The small closed vocabularies that records and jobs share.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Which clock a sample was read from. Samples of two lanes are never pooled or compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// Exact instruction counts of an emulated CPU (QEMU TCG with `-icount`).
    Model,
    /// Nanoseconds of CLOCK_MONOTONIC_RAW.
    Wall,
}

/// What a benchmark measures: it decides the direction and, with the lane, the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Cost of one operation: `elapsed / work`, work counted in operations.
    Latency,
    /// Bytes moved: `work / elapsed`, work counted in bytes.
    Bandwidth,
}

/// The unit of a benchmark's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Guest instructions per operation.
    #[serde(rename = "instr")]
    Instructions,
    /// Nanoseconds per operation.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Bytes per guest instruction.
    #[serde(rename = "B/instr")]
    BytesPerInstruction,
    /// 10^6 bytes per second.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Lower,
    Higher,
}

/// Tests that one name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Suite {
    /// The kernel tests of LMBench.
    Lmbench,
    /// Loads to train with, which are no benchmarks.
    General,
}

/// Where a piece of a command's output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    Stdout,
    Stderr,
}

/// What a step of a program is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    SetUp,
    Command,
    /// After a run of the command that went well: what it says of that run.
    Report,
    TearDown,
}

/// How far a program of a soak is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    Running,
    /// The time is over, and the program is torn down.
    Over,
    /// It failed before it came through once, too often to try again.
    LeftOut,
    /// The agent's process that looked after it is gone.
    Lost,
}

impl Kind {
    pub fn direction(self) -> Direction {
        match self {
            Kind::Latency => Direction::Lower,
            Kind::Bandwidth => Direction::Higher,
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Lane::Model => "model",
            Lane::Wall => "wall",
        })
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Suite::Lmbench => "lmbench",
            Suite::General => "general",
        })
    }
}

impl Unit {
    /// The value of a sample in this unit: `elapsed` in instructions or nanoseconds, `work` in operations or bytes.
    pub fn value(self, elapsed: u64, work: u64) -> f64 {
        let (elapsed, work) = (elapsed as f64, work as f64);
        match self {
            Unit::Instructions | Unit::Nanoseconds => elapsed / work,
            Unit::BytesPerInstruction => work / elapsed,
            Unit::MegabytesPerSecond => work / elapsed * 1e3,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Unit::Instructions => "instr",
            Unit::Nanoseconds => "ns",
            Unit::BytesPerInstruction => "B/instr",
            Unit::MegabytesPerSecond => "MB/s",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LANES;

    #[test]
    fn words_are_displayed_as_they_are_serialised() {
        for row in LANES {
            assert_eq!(serde_json::to_string(&row.name).unwrap(), format!("\"{}\"", row.name));
            for unit in [row.cost_unit, row.bandwidth_unit] {
                assert_eq!(serde_json::to_string(&unit).unwrap(), format!("\"{unit}\""));
            }
        }
        for suite in [Suite::Lmbench, Suite::General] {
            assert_eq!(serde_json::to_string(&suite).unwrap(), format!("\"{suite}\""));
        }
    }

    #[test]
    fn a_thousand_bytes_in_a_microsecond_are_a_thousand_megabytes_per_second() {
        assert_eq!(Unit::MegabytesPerSecond.value(1_000, 1_000), 1_000.0);
        assert_eq!(Unit::Nanoseconds.value(1_000, 10), 100.0);
    }
}
