//! The lanes, one row each: what a sample's clock counts, and what follows from that.
//!
//! kdyno's half of the rows is in src/kdyno/base/lanes.py. `kdyno-agent list --json` prints these, and a test compares them.

use crate::{Kind, Lane, Unit};
use serde::Serialize;

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
}

impl LaneRow {
    pub fn unit(&self, kind: Kind) -> Unit {
        match kind {
            Kind::Latency => self.cost_unit,
            Kind::Bandwidth => self.bandwidth_unit,
        }
    }
}
