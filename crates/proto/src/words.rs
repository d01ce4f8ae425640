//! The small closed vocabularies that records and jobs share.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a benchmark measures: it decides the direction and, with the lane, the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Cost of one operation: `elapsed / work`, work counted in operations.
    Latency,
    /// Bytes moved: `work / elapsed`, work counted in bytes.
    Bandwidth,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Lower,
    Higher,
}

/// Tests that one name represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Suite {
    /// The kernel tests of LMBench.
    Lmbench,
    /// Loads to train with, which are not benchmarks.
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

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Suite::Lmbench => "lmbench",
            Suite::General => "general",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_displayed_as_they_are_serialised() {
        for suite in [Suite::Lmbench, Suite::General] {
            assert_eq!(serde_json::to_string(&suite).unwrap(), format!("\"{suite}\""));
        }
    }
}
