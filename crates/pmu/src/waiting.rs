//! The scheduler: how many instructions wait for what they read.

use kdyno_model::CYCLE;

/// Cycles that are looked ahead for instructions to start; those that start later count as starting then.
const HORIZON: usize = 1024;

/// How many instructions wait, and when they will start.
pub struct Waiting {
    capacity: u32,
    number: u32,
    /// In cycles: those that start until then don't wait any more.
    clock: u64,
    /// How many start in each cycle, around from the clock.
    starting: Box<[u32; HORIZON]>,
}

impl Waiting {
    pub fn new(capacity: u32) -> Waiting {
        Waiting { capacity, number: 0, clock: 0, starting: Box::new([0; HORIZON]) }
    }

    pub fn reset(&mut self) {
        (self.number, self.clock) = (0, 0);
        self.starting.fill(0);
    }

    /// Return the first time, from one on, at which another can wait.
    #[inline(always)]
    pub fn room_from(&mut self, time: u64) -> u64 {
        let cycle = time / CYCLE;
        if self.number == 0 {
            self.clock = self.clock.max(cycle);
        }
        while self.clock < cycle || self.number >= self.capacity {
            self.clock += 1;
            self.number -= std::mem::take(&mut self.starting[self.clock as usize % HORIZON]);
        }
        time.max(self.clock * CYCLE)
    }

    /// Let one wait until a time.
    #[inline(always)]
    pub fn add(&mut self, time: u64) {
        let cycle = (time / CYCLE).min(self.clock + HORIZON as u64 - 1);
        if cycle > self.clock {
            self.starting[cycle as usize % HORIZON] += 1;
            self.number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_as_many_wait_as_can_the_next_comes_when_the_first_starts() {
        let mut waiting = Waiting::new(2);
        waiting.add(10 * CYCLE);
        waiting.add(20 * CYCLE);
        assert_eq!(waiting.room_from(CYCLE), 10 * CYCLE);
        waiting.add(30 * CYCLE);
        assert_eq!(waiting.room_from(12 * CYCLE), 20 * CYCLE);
        assert_eq!(waiting.room_from(25 * CYCLE), 25 * CYCLE);
    }
}
