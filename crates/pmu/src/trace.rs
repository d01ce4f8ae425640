//! The sequence of blocks that were fetched in the latest iteration of a region: what a change of the layout is tried on
//! without another boot (crates/layout).

use crate::block::Block;
use crate::limits::{TRACE_STEPS, TRACE_STEPS_OF_REGION};
use kdyno_model::CYCLE;

/// How one block came after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It is behind it.
    Through,
    /// By a branch that was taken.
    Taken,
    /// As its addresses say, one or the other; that was mispredicted, and fetching began anew.
    Unexpected,
    /// Nothing was known: an entry, or what comes after an exception.
    Entered,
}

/// Parts of a cycle in which the time of a block is recorded.
pub const TIME_PARTS: u64 = 16;
const PART: u64 = CYCLE / TIME_PARTS;

pub struct Step {
    pub block: *const Block,
    /// From when the block was there until all of it was dispatched, in [`TIME_PARTS`] of a cycle.
    pub time: u32,
    pub way: Way,
}

#[derive(Default)]
pub struct Trace {
    pub steps: Vec<Step>,
    /// Further ones that there was no room for.
    pub left_out: u64,
    /// When the latest block was there; None if it is not known, or not kept.
    latest_start: Option<u64>,
}

impl Trace {
    /// Begin another iteration: the one before is forgotten.
    pub fn clear(&mut self) {
        *self = Trace { steps: std::mem::take(&mut self.steps), ..Trace::default() };
        self.steps.clear();
    }

    /// Reset the times.
    pub fn interrupt(&mut self) {
        self.latest_start = None;
    }

    /// Push a block, which is fetched when all before was dispatched; it can be dispatched from a later time on.
    #[inline(always)]
    pub fn push(&mut self, block: *const Block, way: Way, dispatched: u64, ready: u64) {
        if let (Some(latest_start), Some(latest)) = (self.latest_start, self.steps.last_mut()) {
            latest.time = (dispatched.saturating_sub(latest_start) / PART).try_into().unwrap_or(u32::MAX);
        }
        if self.steps.len() == TRACE_STEPS_OF_REGION {
            (self.latest_start, self.left_out) = (None, self.left_out.saturating_add(1));
            return;
        }
        self.latest_start = Some(ready);
        self.steps.push(Step { block, time: 0, way });
    }

    /// Take what is kept of it, where so many steps are kept of other regions.
    pub fn take(&mut self, steps_elsewhere: usize) -> Trace {
        let mut trace = Trace { steps: std::mem::take(&mut self.steps), left_out: self.left_out, latest_start: None };
        let room = TRACE_STEPS.saturating_sub(steps_elsewhere);
        if trace.steps.len() > room {
            trace.left_out = trace.left_out.saturating_add((trace.steps.len() - room) as u64);
            trace.steps.truncate(room);
        }
        trace.steps.shrink_to_fit();
        self.clear();
        trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace_of(steps: usize) -> Trace {
        let mut trace = Trace::default();
        for step in 0..steps as u64 {
            trace.push(std::ptr::null(), Way::Through, 10 * step * CYCLE, (10 * step + 3) * CYCLE);
        }
        trace
    }

    #[test]
    fn a_blocks_time_is_what_passed_between_its_fetch_and_the_next_ones() {
        let mut trace = trace_of(2);
        trace.interrupt();
        trace.push(std::ptr::null(), Way::Entered, 0, 0);
        let times: Vec<_> = trace.steps.iter().map(|step| step.time).collect();
        assert_eq!(times, [7 * TIME_PARTS as u32, 0, 0]);
    }

    #[test]
    fn steps_that_there_is_no_room_for_are_counted() {
        let mut trace = trace_of(TRACE_STEPS_OF_REGION + 5);
        assert_eq!((trace.steps.len(), trace.left_out), (TRACE_STEPS_OF_REGION, 5));
        let first = trace.take(TRACE_STEPS - 100);
        assert_eq!((first.steps.len(), first.left_out), (100, TRACE_STEPS_OF_REGION as u64 - 95));
        assert!(trace.steps.is_empty() && trace.left_out == 0);
    }
}
