//! Modelled hardware: where instructions and data come from, and how long that takes.
//!
//! The PMU plugin (crates/pmu) drives it with what a kernel executes; the search for layouts (crates/layout) drives its
//! front end with a recorded sequence of blocks. It is one model, so that both say the same.
//!
//! geometry: sizes and latencies of a CPU family · cache, tlb, pages, prefetcher, hardware: memory · frontend: fetching ·
//! events: what is counted

#![forbid(unsafe_code)]

pub mod cache;
pub mod events;
#[cfg(test)]
mod formats;
pub mod frontend;
pub mod geometry;
pub mod hardware;
pub mod pages;
pub mod prefetcher;
pub mod tlb;

/// Parts of a cycle: so many that what a division by a width leaves over is nothing.
pub const CYCLE: u64 = 1 << 20;

/// Mix a value: every bit of the result depends on every bit of the value (Steele et al.: SplitMix, OOPSLA 2014, the
/// half of it).
#[inline(always)]
pub fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value ^ value >> 29
}
