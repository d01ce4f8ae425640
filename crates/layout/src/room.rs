//! Free places in the text: a layout is a place for each hot function, and cold ones fill what is between them.
//!
//! Which cold functions these are is decided beforehand, and those that are left over come last. So the ordered part of
//! the text is as long whatever the order, and nothing behind it moves.

use crate::job::{Job, Kind};
use crate::place::{FUNCTION_ALIGN, Order, aligned};
use std::collections::BTreeMap;

/// What functions are aligned to.
pub const GRAIN: u64 = FUNCTION_ALIGN;

/// Bytes that may be left free in all, where no cold function fits.
const SPARE: u64 = 64 << 10;

/// Which hot unit is where, as offsets from the first ordered function.
#[derive(Clone)]
pub struct Room {
    /// Where the last one may end.
    pub end: u64,
    /// Cold functions between the others.
    fillers: Vec<u32>,
    by_start: BTreeMap<u64, u32>,
    pub start: Vec<Option<u64>>,
    size: Vec<u64>,
}

impl Room {
    /// Return the units of an order, one behind the other, and behind them room for as much again.
    pub fn packed(job: &Job, order: &[u32]) -> Room {
        let size: Vec<u64> = job.units.iter().map(|unit| aligned(unit.size.max(1), GRAIN)).collect();
        let hot: u64 = order.iter().map(|unit| size[*unit as usize]).sum();
        let cold = cold(job, order);
        let all: u64 = cold.iter().map(|unit| size[*unit as usize]).sum();
        // Of all parts of the text, and so of all sizes.
        let fillers: Vec<u32> = cold.into_iter().step_by((all / hot.max(1)).max(1) as usize).collect();
        let end = hot + fillers.iter().map(|unit| size[*unit as usize]).sum::<u64>();
        let (by_start, start) = (BTreeMap::new(), vec![None; job.units.len()]);
        let mut room = Room { end, fillers, by_start, start, size };
        let mut at = 0;
        for unit in order {
            room.put(*unit, at);
            at += room.size[*unit as usize];
        }
        room
    }

    pub fn size(&self, unit: u32) -> u64 {
        self.size[unit as usize]
    }

    pub fn put(&mut self, unit: u32, at: u64) {
        self.start[unit as usize] = Some(at);
        self.by_start.insert(at, unit);
    }

    pub fn take(&mut self, unit: u32) {
        if let Some(at) = self.start[unit as usize].take() {
            self.by_start.remove(&at);
        }
    }

    /// Return whether a unit can be put there: it overlaps with no other.
    pub fn is_free(&self, unit: u32, at: u64) -> bool {
        let end = at + self.size(unit);
        let before = self.by_start.range(..=at).next_back().map_or(0, |(start, unit)| start + self.size(*unit));
        let behind = self.by_start.range(at..).next().map_or(u64::MAX, |(start, _)| *start);
        end <= self.end && at >= before && end <= behind
    }

    /// Return the order that puts every unit where it is: cold functions in the gaps, as far as they fit, and the rest
    /// stays free.
    pub fn order(&self) -> Order {
        let mut by_size: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for unit in &self.fillers {
            by_size.entry(self.size(*unit)).or_default().push(*unit);
        }
        let mut order = Order::default();
        let mut at = 0;
        for (start, unit) in &self.by_start {
            while let Some((size, filler)) = take_filler(start.saturating_sub(at), &mut by_size) {
                order.units.push((filler, Some(at)));
                at += size;
            }
            order.units.push((*unit, Some(*start)));
            at = start + self.size(*unit);
        }
        for (size, units) in by_size {
            for unit in units {
                order.units.push((unit, Some(at)));
                at += size;
            }
        }
        order.end = Some(at.max(self.end + SPARE));
        order
    }
}

/// Take the largest filler that fits, and return it with its size.
fn take_filler(gap: u64, by_size: &mut BTreeMap<u64, Vec<u32>>) -> Option<(u64, u32)> {
    let (size, units) = by_size.range_mut(..=gap).next_back()?;
    let (size, unit) = (*size, units.pop()?);
    if units.is_empty() {
        by_size.remove(&size);
    }
    Some((size, unit))
}

/// Return the functions that can be ordered and aren't: those of the usual alignment.
fn cold(job: &Job, order: &[u32]) -> Vec<u32> {
    let mut is_free: Vec<bool> =
        job.units.iter().map(|unit| unit.kind == Kind::Movable && unit.align == GRAIN && unit.size > 0).collect();
    order.iter().for_each(|unit| is_free[*unit as usize] = false);
    (0..).zip(is_free).filter(|(_, is_free)| *is_free).map(|(unit, _)| unit).collect()
}
