//! How to measure, decided once per run.

use crate::measure::Clock;
use kdyno_proto::Lane;

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub clock: Clock,
    /// Samples per benchmark.
    pub iterations: u32,
}

impl Settings {
    pub fn lane(&self) -> Lane {
        match self.clock {
            Clock::Wall => Lane::Wall,
            Clock::Model { .. } => Lane::Model,
        }
    }

    pub fn icount_shift(&self) -> Option<u8> {
        match self.clock {
            Clock::Wall => None,
            Clock::Model { shift } => Some(shift),
        }
    }

    /// Iterations when nobody says how many: time is noisier than instruction counts.
    pub fn default_iterations(lane: Lane) -> u32 {
        match lane {
            Lane::Model => 7,
            Lane::Wall => 11,
        }
    }
}
