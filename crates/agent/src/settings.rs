//! How to measure, decided once per run.

use crate::measure::clock::Clock;
use kdyno_proto::Lane;

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub lane: Lane,
    pub clock: Clock,
    /// Samples per benchmark.
    pub iterations: u32,
}

impl Settings {
    pub fn icount_shift(&self) -> Option<u8> {
        match self.clock {
            Clock::Wall | Clock::Cycles(_) => None,
            Clock::Model { shift } => Some(shift),
        }
    }
}
