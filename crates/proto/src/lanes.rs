//! The lanes: what a sample's clock counts, and what follows from that. The rows are src/kdyno/data/lanes.json, which
//! kdyno reads, too; a new lane is a row there.
//!
//! Code asks a lane what it can do, never which it is. `kdyno-agent list --json` prints what the agent reads of the
//! rows, and a test compares that with the file: an agent of another release would have other rows.

use crate::Direction;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::LazyLock;

/// Which clock a sample was read from, by its place in [`LANES`]. Samples of two lanes are never pooled or compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane(usize);

/// What the agent needs of a lane's row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LaneRow {
    pub name: String,
    /// Unit of what an operation costs.
    pub cost_unit: String,
    pub bandwidth_unit: String,
    /// One byte per unit of the clock, in units of a bandwidth.
    #[serde(skip_serializing)]
    bandwidth_scale: f64,
    /// Samples per benchmark when nobody says how many. Time is noisier than instruction counts; odd, so that the median
    /// of a boot is one of its samples.
    pub iterations: u32,
    /// The clock is that of QEMU's `-icount`: a job must say its shift.
    #[serde(rename(deserialize = "is_icount"))]
    pub icount: bool,
    /// The clock is a counter of the core PMU, on one CPU.
    #[serde(skip_serializing)]
    uses_core_pmu: bool,
}

pub static LANES: LazyLock<Vec<LaneRow>> = LazyLock::new(|| {
    let rows = include_str!("../../../src/kdyno/data/lanes.json");
    serde_json::from_str(rows).expect("a test reads the rows")
});

impl Lane {
    /// Return every lane, in the order of the rows.
    pub fn all() -> impl Iterator<Item = Lane> {
        (0..LANES.len()).map(Lane)
    }

    pub fn row(self) -> &'static LaneRow {
        &LANES[self.0]
    }

    /// Return whether the clock counts the instructions of one emulated CPU; else time passes.
    pub fn is_icount(self) -> bool {
        self.row().icount
    }

    /// Return whether the clock is a counter of the processor's own PMU, which counts on one CPU.
    pub fn uses_core_pmu(self) -> bool {
        self.row().uses_core_pmu
    }

    /// Return the lane that applies where nobody names one, the first of its kind: it is known whether QEMU runs with
    /// `-icount`.
    pub fn usual(is_icount: bool) -> Lane {
        Lane::all().find(|lane| lane.is_icount() == is_icount).expect("there are lanes of both kinds")
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.row().name)
    }
}

impl Serialize for Lane {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.row().name)
    }
}

impl<'de> Deserialize<'de> for Lane {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lane, D::Error> {
        let name = String::deserialize(deserializer)?;
        let lane = Lane::all().find(|lane| lane.row().name == name);
        lane.ok_or_else(|| {
            let names: Vec<_> = LANES.iter().map(|row| row.name.as_str()).collect();
            D::Error::custom(format_args!("unknown lane `{name}`, expected one of {}", names.join(", ")))
        })
    }
}

impl LaneRow {
    /// Return the unit of a benchmark of which that direction is better.
    pub fn unit(&self, direction: Direction) -> &str {
        match direction {
            Direction::Lower => &self.cost_unit,
            Direction::Higher => &self.bandwidth_unit,
        }
    }

    /// Return the value of a sample in that unit: `elapsed` is read from the clock, `work` is operations or bytes.
    pub fn value(&self, direction: Direction, elapsed: u64, work: u64) -> f64 {
        let (elapsed, work) = (elapsed as f64, work as f64);
        match direction {
            Direction::Lower => elapsed / work,
            Direction::Higher => self.bandwidth_scale * work / elapsed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_displayed_as_it_is_serialised_and_read_as_it_is_written() {
        for lane in Lane::all() {
            let text = serde_json::to_string(&lane).unwrap();
            assert_eq!(text, format!("\"{lane}\""));
            assert_eq!(serde_json::from_str::<Lane>(&text).unwrap(), lane);
        }
    }

    #[test]
    fn a_usual_lane_has_the_clock_that_is_asked_for() {
        assert!([true, false].iter().all(|&is_icount| Lane::usual(is_icount).is_icount() == is_icount));
    }

    #[test]
    fn a_thousand_bytes_in_a_microsecond_are_a_thousand_megabytes_per_second() {
        let time = Lane::usual(false).row();
        assert_eq!((time.unit(Direction::Higher), time.value(Direction::Higher, 1_000, 1_000)), ("MB/s", 1_000.0));
        assert_eq!((time.unit(Direction::Lower), time.value(Direction::Lower, 1_000, 10)), ("ns", 100.0));
    }
}
