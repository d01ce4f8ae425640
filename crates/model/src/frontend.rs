//! Where instructions come from, and when they are there to be dispatched.
//!
//! The predictor runs ahead of everything else and queues blocks; their lines are fetched as soon as they are queued,
//! so that a miss costs only what the queue doesn't hide (Reinman, Calder, Austin: Fetch directed instruction
//! prefetching, MICRO 1999; Ishii et al.: Re-establishing fetch-directed instruction prefetching, ISPASS 2021). It starts
//! again, with nothing queued, after a misprediction, and at decode where it didn't know that there is a taken branch:
//! its branch target buffer had forgotten it. A line that misses brings the next one along (Smith: Sequential program
//! prefetching in memory hierarchies, IEEE Computer 1978). What the op cache has needs neither fetching nor decoding. Its
//! entries begin where a line is entered, by a branch or from above, and hold a number of ops of that line: code that is
//! entered at two places is there twice.
//!
//! Times are those of dispatch: fetching earlier stages is a constant that the cost of a misprediction has in it.

use crate::cache::Lru;
use crate::events::{Counts, Event};
use crate::geometry::{self, Geometry};
use crate::{CYCLE, mixed};

const LINE_BITS: u32 = 6;
/// A page's lines; nothing is fetched ahead beyond a page that isn't known to be there.
const PAGE_LINES: u64 = 64;
/// Lines on their way are remembered by so many low bits of their number.
const REMEMBERED: usize = 64;
const NO_LINE: u64 = u64::MAX;

/// A block of instructions, as far as fetching it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetched {
    pub start: u64,
    /// Address of the last instruction.
    pub last: u64,
    /// Address behind it.
    pub end: u64,
    /// Ops that it is decoded into.
    pub ops: u32,
    /// The last instruction is one that the branch target buffer may know.
    pub is_branch: bool,
    /// It is a call or a return.
    pub is_call: bool,
}

/// The part of a block that lies in one line.
struct Portion {
    line: u64,
    start: u64,
    ops: u64,
    bytes: u64,
    /// The line is entered here.
    is_new: bool,
}

/// What is beyond the first cache of instructions and the queue; levels and tables are those of
/// [`crate::hardware::Reach`].
pub trait Beyond {
    /// Return which table has the translation of a block's address.
    fn translate_fetch(&mut self, address: u64, counts: &mut Counts) -> u8;
    /// Return which level has a line that the first cache lacks.
    fn fetch_miss(&mut self, line: u64, counts: &mut Counts) -> u8;
    /// Return which level has a line that is fetched ahead.
    fn fetch_ahead(&mut self, line: u64) -> u8;
}

pub struct Frontend {
    cache: Lru,
    op_cache: Option<OpCache>,
    /// Addresses of branches that were taken.
    targets: Lru,
    /// When the predictor has the next block.
    ahead: u64,
    /// When the ops before the next block are out of the decoders or the op cache.
    delivered: u64,
    /// When each of the latest blocks left the queue.
    queue: Box<[u64]>,
    queued: usize,
    /// When each of the latest misses was filled.
    fills: Box<[u64]>,
    filled: usize,
    /// Lines, and when they will be there.
    coming: Box<[(u64, u64); REMEMBERED]>,
    last_line: u64,
    cost: Costs,
}

/// Instructions that are there as ops.
struct OpCache {
    entries: Lru,
    sets: u64,
    /// Ops of an entry.
    width: u64,
    /// Where the latest line was entered, and how many entries that took until now.
    entered: u64,
    taken: u64,
    /// Ops that the latest entry has room for.
    room: u64,
    /// The latest entry was there.
    is_hit: bool,
}

impl OpCache {
    fn new(size: &geometry::Frontend) -> OpCache {
        let sets = size.op_cache / size.op_cache_width / size.op_cache_ways;
        OpCache {
            entries: Lru::new(sets, size.op_cache_ways),
            sets,
            width: size.op_cache_width,
            entered: 0,
            taken: 0,
            room: 0,
            is_hit: false,
        }
    }

    /// Enter a line at an address.
    #[inline(always)]
    fn enter(&mut self, address: u64) {
        (self.entered, self.taken, self.room) = (address, 0, 0);
    }

    /// Take so many more ops of the line; return how many entries were not there.
    #[inline(always)]
    fn take(&mut self, ops: u64) -> u64 {
        let mut misses = 0;
        while self.room < ops || self.taken == 0 {
            let entry = mixed(self.entered ^ self.taken << 56) >> 16;
            self.is_hit = self.entries.touch(entry * self.sets + (self.entered >> LINE_BITS) % self.sets);
            misses += u64::from(!self.is_hit);
            self.taken += 1;
            self.room += self.width;
        }
        self.room -= ops;
        misses
    }
}

/// The costs in parts of a cycle.
struct Costs {
    level: [u64; 4],
    translation: [u64; 3],
    /// An op out of the op cache.
    op: u64,
    /// A decoded op.
    decoded: u64,
    /// A byte through the decoders.
    byte: u64,
    /// From a line's bytes to its first op.
    decoding: u64,
    resteer: u64,
    /// A call or a return, beyond the cycle that a taken branch takes.
    call: u64,
    /// Ops that wait between decoding and dispatch take so long to dispatch.
    slack: u64,
}

impl Frontend {
    pub fn new(geometry: &Geometry) -> Frontend {
        let (size, latency) = (&geometry.frontend, &geometry.latency);
        let beyond = |cycles: u64| cycles.saturating_sub(latency.l1) * CYCLE;
        Frontend {
            cache: Lru::new((geometry.l1i.size >> LINE_BITS) / geometry.l1i.ways, geometry.l1i.ways),
            op_cache: (size.op_cache > 0).then(|| OpCache::new(size)),
            targets: Lru::new(size.btb / size.btb_ways, size.btb_ways),
            ahead: 0,
            delivered: 0,
            queue: vec![0; size.queue].into(),
            queued: 0,
            fills: vec![0; size.misses].into(),
            filled: 0,
            coming: Box::new([(NO_LINE, 0); REMEMBERED]),
            last_line: NO_LINE,
            cost: Costs {
                level: [0, beyond(latency.l2), beyond(latency.llc), beyond(latency.memory)],
                translation: [0, latency.stlb * CYCLE, latency.walk * CYCLE],
                op: CYCLE / size.op_cache_width.max(1),
                decoded: CYCLE / size.decoders,
                byte: CYCLE / size.bytes,
                decoding: latency.decode * CYCLE,
                resteer: latency.resteer * CYCLE,
                call: latency.call.saturating_sub(1) * CYCLE,
                slack: size.ops * CYCLE / u64::from(geometry.width),
            },
        }
    }

    /// Reset the times; the caches keep what they have.
    pub fn reset(&mut self) {
        (self.ahead, self.delivered) = (0, 0);
        self.queue.fill(0);
        self.fills.fill(0);
        self.coming.fill((NO_LINE, 0));
    }

    /// Restart fetching at a time: what was queued is wrong.
    pub fn restart(&mut self, time: u64) {
        self.ahead = time;
        self.last_line = NO_LINE;
    }

    /// Record that a branch, the last instruction of a block, was taken.
    #[inline(always)]
    pub fn taken(&mut self, before: &Fetched, counts: &mut Counts) {
        self.last_line = NO_LINE;
        self.delivered = self.delivered.next_multiple_of(CYCLE);
        self.ahead += if before.is_call { self.cost.call } else { 0 };
        if before.is_branch && !self.targets.touch(mixed(before.last)) {
            counts[Event::btb_misses as usize] += 1;
            self.ahead = self.ahead.max(self.delivered + self.cost.resteer);
        }
    }

    /// Fetch the next block, while the one before is dispatched until a time; return from when on it can be.
    #[inline(always)]
    pub fn fetch(&mut self, block: &Fetched, dispatched: u64, beyond: &mut impl Beyond, counts: &mut Counts) -> u64 {
        let mut time = self.ahead.max(self.queue[self.queued]);
        // A block may reach up to the last address, behind which there is 0.
        let last = block.end.checked_sub(1).unwrap_or(block.start);
        let translation = beyond.translate_fetch(block.start, counts);
        // The predictor takes a cycle more where the first TLB lacks the page.
        time += if translation > 0 { CYCLE } else { 0 };
        let mut ready = time + self.cost.translation[usize::from(translation)];
        let mut delivery = 0;
        let (mut start, mut left) = (block.start, u64::from(block.ops));
        for line in block.start >> LINE_BITS..=last >> LINE_BITS {
            let next = if line == last >> LINE_BITS { block.end } else { (line + 1) << LINE_BITS };
            let (bytes, all) = (next.wrapping_sub(start), block.end.wrapping_sub(start));
            // How many of its ops are in this line isn't known: as many as its bytes.
            let ops = if bytes == all { left } else { left * bytes / all };
            let is_new = line != self.last_line;
            self.last_line = line;
            let portion = Portion { line, start, ops, bytes, is_new };
            let (arrived, taken) = self.portion(&portion, time, beyond, counts);
            ready = ready.max(arrived);
            delivery += taken;
            time += if is_new { CYCLE } else { 0 };
            (start, left) = (next, left - ops);
        }
        self.ahead = time;
        let begin = self.delivered.max(ready).max(dispatched.saturating_sub(self.cost.slack));
        self.delivered = begin + delivery;
        self.queue[self.queued] = begin;
        self.queued = if self.queued + 1 == self.queue.len() { 0 } else { self.queued + 1 };
        begin
    }

    /// Return when a block's ops in a line, requested at a time, are there, and how long it takes to deliver them.
    #[inline(always)]
    fn portion(&mut self, portion: &Portion, time: u64, beyond: &mut impl Beyond, counts: &mut Counts) -> (u64, u64) {
        let Portion { line, start, ops, bytes, is_new } = *portion;
        let mut has_missed = is_new;
        if let Some(cache) = &mut self.op_cache {
            if is_new {
                cache.enter(start);
            }
            let misses = cache.take(ops);
            counts[Event::op_cache_misses as usize] += misses;
            has_missed = misses > 0;
            if cache.is_hit && !has_missed {
                return (time, ops * self.cost.op);
            }
        }
        let decoded = (ops * self.cost.decoded).max(bytes * self.cost.byte);
        if has_missed {
            return (self.bytes(line, time, beyond, counts) + self.cost.decoding, decoded);
        }
        (time, decoded)
    }

    /// Return when the bytes of a line are there.
    fn bytes(&mut self, line: u64, time: u64, beyond: &mut impl Beyond, counts: &mut Counts) -> u64 {
        let (coming, filled) = self.coming[line as usize % REMEMBERED];
        if self.cache.touch(line) {
            return if coming == line { time.max(filled) } else { time };
        }
        let filled = self.fill(line, beyond.fetch_miss(line, counts), time);
        let next = line + 1;
        let is_idle = self.fills[self.filled] <= time;
        if is_idle && !next.is_multiple_of(PAGE_LINES) && !self.cache.touch(next) {
            self.fill(next, beyond.fetch_ahead(next), time);
        }
        filled
    }

    /// Return when a line that was missed at a time is there; misses wait for each other where there are many.
    fn fill(&mut self, line: u64, level: u8, time: u64) -> u64 {
        let filled = time.max(self.fills[self.filled]) + self.cost.level[usize::from(level)];
        self.fills[self.filled] = filled;
        self.filled = if self.filled + 1 == self.fills.len() { 0 } else { self.filled + 1 };
        self.coming[line as usize % REMEMBERED] = (line, filled);
        filled
    }
}

#[cfg(test)]
mod tests;
