//! Execution units: how many operations of each kind can start in a cycle, and in which one the next can.
//!
//! Units are taken in any order: an operation that is ready early takes a cycle before one that was dispatched before it
//! and is ready later.

use kdyno_model::CYCLE;
use kdyno_model::geometry;

/// What an operation occupies for one cycle: a byte for each kind of unit, 1 where it needs one.
pub type Needs = u64;

pub const ALU: Needs = 1;
/// Shifts, rotations, bit tests and additions of three parts, which not every unit for arithmetic can do.
pub const SHIFT: Needs = 1 << 8;
pub const BRANCH: Needs = 1 << 16;
pub const MULTIPLY: Needs = 1 << 24;
/// Conditional moves and sets.
pub const CONDITION: Needs = 1 << 32;
pub const LOAD: Needs = 1 << 40;
/// A load or a store.
pub const ACCESS: Needs = 1 << 48;
/// A load of what a store before it has not put into the cache yet.
pub const FORWARD: Needs = 1 << 56;

/// Of each byte the bit that says that no unit is free.
const FULL: u64 = 0x80 * (ALU | SHIFT | BRANCH | MULTIPLY | CONDITION | LOAD | ACCESS | FORWARD);
/// Cycles that are looked ahead; beyond that every unit is free.
const HORIZON: u64 = 1024;

/// Which units are taken in each cycle from now on.
pub struct Units {
    /// Of each kind 128 less the units that are free.
    occupancy: Box<[u64; HORIZON as usize]>,
    /// What `occupancy` is where nothing is.
    none: u64,
    /// The first cycle that can still be asked for.
    first_cycle: u64,
}

impl Units {
    pub fn new(units: &geometry::Units) -> Units {
        let capacity = [
            units.alus,
            units.shifters,
            units.branches,
            units.multipliers,
            units.conditions,
            units.loads,
            units.accesses,
            units.forwards,
        ];
        let none = u64::from_le_bytes(capacity.map(|units| 128 - units));
        Units { occupancy: Box::new([none; HORIZON as usize]), none, first_cycle: 0 }
    }

    pub fn reset(&mut self) {
        self.occupancy.fill(self.none);
        self.first_cycle = 0;
    }

    /// Forget the cycles before a time: nothing will be taken there.
    #[inline(always)]
    pub fn forget_before(&mut self, time: u64) {
        let cycle = time / CYCLE;
        if cycle >= self.first_cycle + HORIZON {
            self.occupancy.fill(self.none);
            self.first_cycle = cycle;
        }
        while self.first_cycle < cycle {
            self.occupancy[(self.first_cycle % HORIZON) as usize] = self.none;
            self.first_cycle += 1;
        }
    }

    /// Take units in the first cycle, from a time on, in which all that are needed are free; return when that is.
    #[inline(always)]
    pub fn take(&mut self, needs: Needs, time: u64) -> u64 {
        let first = time / CYCLE;
        let mut cycle = first;
        while cycle < self.first_cycle + HORIZON {
            let occupancy = &mut self.occupancy[(cycle % HORIZON) as usize];
            if *occupancy & needs << 7 & FULL == 0 {
                *occupancy += needs;
                break;
            }
            cycle += 1;
        }
        if cycle == first { time } else { cycle * CYCLE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kdyno_model::geometry::{Geometry, SMALL};

    fn units() -> Units {
        Units::new(&Geometry::parse(SMALL).unwrap().units)
    }

    #[test]
    fn as_many_start_in_a_cycle_as_there_are_units_of_a_kind() {
        let mut units = units();
        let starts: Vec<u64> = (0..6).map(|_| units.take(ALU | SHIFT, 0) / CYCLE).collect();
        assert_eq!(starts, [0, 0, 1, 1, 2, 2]);
        // Two of the four for arithmetic are left in each of these cycles.
        assert_eq!([units.take(ALU, 0), units.take(ALU, 0), units.take(ALU, 0)], [0, 0, CYCLE]);
    }

    #[test]
    fn what_is_ready_early_does_not_wait_for_what_is_ready_late() {
        let mut units = units();
        assert_eq!(units.take(MULTIPLY, 9 * CYCLE), 9 * CYCLE);
        assert_eq!(units.take(MULTIPLY, CYCLE / 2), CYCLE / 2);
        assert_eq!(units.take(MULTIPLY, 9 * CYCLE), 10 * CYCLE);
    }

    #[test]
    fn cycles_that_are_over_are_free_again_when_their_place_is_used_for_others() {
        let mut units = units();
        (0..4).for_each(|_| _ = units.take(ALU, 5 * CYCLE));
        units.forget_before(8 * CYCLE);
        let later = (5 + HORIZON) * CYCLE;
        assert_eq!(units.take(ALU, later), later);
    }
}
