//! Where each unit is under an order.

use crate::job::{Job, Kind, Trace, Unit};
use kdyno_model::frontend::Fetched;
use serde::Serialize;

/// Functions in their order, and where some of them are wanted.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Order {
    /// Units, and where each begins, as an offset from the first, if there is room; None: where it can, as it is
    /// aligned.
    pub units: Vec<(u32, Option<u64>)>,
    /// Where what isn't ordered begins.
    pub end: Option<u64>,
}

impl Order {
    pub fn plain(units: &[u32]) -> Order {
        Order { units: units.iter().map(|unit| (*unit, None)).collect(), end: None }
    }
}

/// Place units as a linker does: ordered units first, then the others as they were, each as it is aligned. Units behind
/// them move with the end of all that.
pub fn addresses(job: &Job, order: &Order) -> Vec<u64> {
    let mut is_ordered = vec![false; job.units.len()];
    order.units.iter().for_each(|(unit, _)| is_ordered[*unit as usize] = true);
    let others = (0..job.units.len())
        .filter(|unit| !is_ordered[*unit] && matches!(job.units[*unit].kind, Kind::Movable | Kind::Staying));
    let mut placed: Vec<u64> = job.units.iter().map(|unit| unit.start).collect();
    let mut at = job.base;
    let ordered = order.units.iter().map(|(unit, wanted)| (*unit as usize, *wanted));
    let others = others.enumerate().map(|(place, unit)| (unit, order.end.filter(|_| place == 0)));
    for (unit, wanted) in ordered.chain(others) {
        if let Some(wanted) = wanted {
            at = aligned(at, FUNCTION_ALIGN).max(job.base.wrapping_add(wanted));
        }
        at = aligned(at, job.units[unit].align);
        placed[unit] = at;
        at = at.wrapping_add(job.units[unit].size);
    }
    let is_packed = |unit: &&Unit| matches!(unit.kind, Kind::Movable | Kind::Staying);
    let before = job.units.iter().filter(is_packed).map(|unit| unit.start.wrapping_add(unit.size)).max();
    let moved = aligned(at, FUNCTION_ALIGN).wrapping_sub(aligned(before.unwrap_or(at), FUNCTION_ALIGN));
    for (place, unit) in placed.iter_mut().zip(&job.units) {
        if unit.kind == Kind::Behind {
            *place = place.wrapping_add(moved);
        }
    }
    placed
}

/// What kernels align output by (ALIGN_FUNCTION() of include/asm-generic/vmlinux.lds.h, for x86-64).
pub const FUNCTION_ALIGN: u64 = 16;

pub fn aligned(address: u64, align: u64) -> u64 {
    address.wrapping_add(align - 1) & !(align - 1)
}

/// Return the blocks of a trace, where its units are now.
pub fn fetched(trace: &Trace, units: &[Unit], placed: &[u64]) -> Vec<Fetched> {
    let move_block = |block: &crate::job::Block| {
        let Some(unit) = block.unit else {
            return block.code;
        };
        let moved = placed[unit as usize].wrapping_sub(units[unit as usize].start);
        let Fetched { start, last, end, ops, is_branch, is_call } = block.code;
        let (start, last, end) = (start.wrapping_add(moved), last.wrapping_add(moved), end.wrapping_add(moved));
        Fetched { start, last, end, ops, is_branch, is_call }
    };
    trace.blocks.iter().map(move_block).collect()
}
