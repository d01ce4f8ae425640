//! The lanes: what a sample's clock counts, and what follows from that. A new one is a variant, a row, and its units.
//!
//! Code asks a lane what it can do, never which it is. kdyno's half of the rows is in src/kdyno/base/lanes.py.
//! `kdyno-agent list --json` prints these, and a test compares them.

use crate::Kind;
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

#[derive(Debug, Clone, Copy, Serialize)]
pub struct LaneRow {
    pub name: Lane,
    /// Unit of what an operation costs.
    pub cost_unit: Unit,
    pub bandwidth_unit: Unit,
    /// Samples per benchmark when nobody says how many. Time is noisier than instruction counts; odd, so that the median
    /// of a boot is one of its samples.
    pub iterations: u32,
    /// The clock is that of QEMU's `-icount`: a job must say its shift.
    pub icount: bool,
}

pub const LANES: &[LaneRow] = &[
    LaneRow {
        name: Lane::Model,
        cost_unit: Unit::Instructions,
        bandwidth_unit: Unit::BytesPerInstruction,
        iterations: 7,
        icount: true,
    },
    LaneRow {
        name: Lane::Wall,
        cost_unit: Unit::Nanoseconds,
        bandwidth_unit: Unit::MegabytesPerSecond,
        iterations: 11,
        icount: false,
    },
];

impl Lane {
    pub fn row(self) -> &'static LaneRow {
        LANES.iter().find(|row| row.name == self).expect("every lane has a row")
    }

    /// Return whether the clock counts the instructions of one emulated CPU; else time passes.
    pub fn is_icount(self) -> bool {
        self.row().icount
    }

    /// Return the lane that applies where nobody names one: it is known whether QEMU runs with `-icount`.
    pub fn usual(is_icount: bool) -> Lane {
        LANES.iter().find(|row| row.icount == is_icount).expect("there are lanes of both kinds").name
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.serialize(f)
    }
}

impl LaneRow {
    pub fn unit(&self, kind: Kind) -> Unit {
        match kind {
            Kind::Latency => self.cost_unit,
            Kind::Bandwidth => self.bandwidth_unit,
        }
    }
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

impl Unit {
    /// Return the value of a sample in this unit: `elapsed` in instructions or nanoseconds, `work` in operations or
    /// bytes.
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
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_and_units_are_displayed_as_they_are_serialised() {
        assert_eq!(LANES[0].name.to_string(), "model");
        assert_eq!(LANES[0].bandwidth_unit.to_string(), "B/instr");
    }

    #[test]
    fn a_usual_lane_has_the_clock_that_is_asked_for() {
        assert!([true, false].iter().all(|&is_icount| Lane::usual(is_icount).is_icount() == is_icount));
    }

    #[test]
    fn a_thousand_bytes_in_a_microsecond_are_a_thousand_megabytes_per_second() {
        assert_eq!(Unit::MegabytesPerSecond.value(1_000, 1_000), 1_000.0);
        assert_eq!(Unit::Nanoseconds.value(1_000, 10), 100.0);
    }
}
