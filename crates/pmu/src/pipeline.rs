//! How long an out-of-order processor would wait, and for what.
//!
//! Instructions are dispatched in order, `width` a cycle, as long as fewer than `window` are in flight and fewer than
//! `scheduler` wait; each starts when what it reads is ready, and all retire in order. What makes one retire later than
//! dispatch alone would is a stall, counted in cycles by its reason. (Karkhanis, Smith: A first-order superscalar
//! processor model, ISCA 2004; Eyerman et al.: A performance counter architecture for computing accurate CPI
//! components, ASPLOS 2006.) Of execution units only those for integer arithmetic are counted, the divider, and locked
//! instructions, which follow one another.

use crate::events::{Counts, EVENTS, Event};
use crate::geometry::Geometry;
use crate::hardware::Reach;
use crate::waiting::Waiting;
use kdyno_model::CYCLE;

/// General registers are 0 to 15.
pub const FLAGS: u8 = 16;
/// Always ready.
pub const NOTHING: u8 = 17;
/// Nobody reads it.
pub const NOWHERE: u8 = 18;
/// Bits of a number of a register.
const REGISTERS: usize = 32;

/// Words that were stored, and lines that are on their way, are remembered by so many low bits of their address.
const REMEMBERED: usize = 256;
/// A load that comes later than this takes a stored word from the cache.
const FORWARDED_WITHIN: u64 = 40 * CYCLE;
/// Units for arithmetic that were free for so long can make up for it: what waited in between was not theirs.
const ALU_SLACK: u64 = 8 * CYCLE;
const MOST_TOUCHES: usize = 512;

/// What decides the timing of one instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// Registers of the address.
    pub address: [u8; 2],
    /// Other registers that are read.
    pub sources: [u8; 3],
    pub targets: [u8; 3],
    /// Cycles until the result is ready, without those of a load.
    pub latency: u8,
    /// The text of its address: base, index and displacement.
    pub spelt: u32,
    /// It is one with the instruction before: a comparison and its jump.
    pub is_fused: bool,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Arithmetic, comparisons and branches.
    Plain,
    /// Moves, loads and stores, or nothing at all: needs no unit for arithmetic.
    Move,
    Divide,
    /// Starts when everything before is done, and nothing after it starts before it is done.
    Fence,
    Locked,
    /// A REP string instruction: weighed by its bytes, and not timed.
    Rep,
}

#[derive(Clone, Copy)]
struct Touch {
    place: u16,
    is_store: bool,
    reach: Reach,
    word: u64,
}

/// A word or a line, and when its data are there.
#[derive(Clone, Copy)]
struct Coming {
    key: u64,
    time: u64,
    reach: Reach,
    spelt: u32,
}

const NONE: Coming =
    Coming { key: u64::MAX, time: 0, reach: Reach { level: 0, is_chained: false, translation: 0 }, spelt: 0 };
/// By level, and whether it is chained.
const STALLS: [[Event; 2]; 4] = [
    [Event::stall_dependencies; 2],
    [Event::stall_l2, Event::stall_l2_chained],
    [Event::stall_llc, Event::stall_llc_chained],
    [Event::stall_memory, Event::stall_memory_chained],
];

/// Times are in parts of a cycle since the region began.
pub struct Pipeline {
    step: u64,
    /// The same for arithmetic.
    alu_step: u64,
    latencies: Latencies,
    dispatched: u64,
    retired: u64,
    /// When the latest instruction's result was there.
    done: u64,
    /// When each of the latest `window` instructions retired.
    window: Vec<u64>,
    at: usize,
    ready: [u64; REGISTERS],
    /// Registers, by bit, whose values come out of loads that missed the first cache.
    missed: u32,
    waiting: Waiting,
    /// When the next unit of each kind is free.
    alu: u64,
    divider: u64,
    lock: u64,
    /// Time for dispatch that no progress has paid for yet.
    owed: u64,
    /// Why nothing was dispatched for a while.
    late: Option<Event>,
    /// And for how long the front end was why.
    starved: u64,
    touches: Vec<Touch>,
    stores: Vec<Coming>,
    fills: Vec<Coming>,
    /// Parts of cycles of each event that don't make a whole one yet.
    parts: [u64; EVENTS],
}

struct Latencies {
    load: u64,
    forward: u64,
    level: [u64; 4],
    translation: [u64; 3],
    mispredicted: u64,
    divide: u64,
    locked: u64,
    fence: u64,
}

impl Pipeline {
    pub fn new(geometry: &Geometry) -> Pipeline {
        let latency = &geometry.latency;
        let beyond = |cycles: u64| cycles.saturating_sub(latency.l1) * CYCLE;
        let latencies = Latencies {
            load: latency.l1 * CYCLE,
            forward: latency.forward * CYCLE,
            level: [0, beyond(latency.l2), beyond(latency.llc), beyond(latency.memory)],
            translation: [0, latency.stlb * CYCLE, latency.walk * CYCLE],
            mispredicted: latency.mispredicted * CYCLE,
            divide: latency.divide * CYCLE,
            locked: latency.locked * CYCLE,
            fence: latency.fence * CYCLE,
        };
        Pipeline {
            step: CYCLE / u64::from(geometry.width),
            alu_step: CYCLE / u64::from(geometry.alus),
            latencies,
            dispatched: 0,
            retired: 0,
            done: 0,
            window: vec![0; geometry.window],
            at: 0,
            ready: [0; REGISTERS],
            missed: 0,
            waiting: Waiting::new(geometry.scheduler),
            alu: 0,
            divider: 0,
            lock: 0,
            owed: 0,
            late: None,
            starved: 0,
            touches: Vec::with_capacity(MOST_TOUCHES),
            stores: vec![NONE; REMEMBERED],
            fills: vec![NONE; REMEMBERED],
            parts: [0; EVENTS],
        }
    }

    /// Reset the pipeline at the start of a region: nothing is in flight.
    pub fn reset(&mut self) {
        (self.dispatched, self.retired, self.done, self.owed, self.late) = (0, 0, 0, 0, None);
        (self.alu, self.divider, self.lock, self.missed, self.starved) = (0, 0, 0, 0, 0);
        self.window.fill(0);
        self.waiting.reset();
        self.ready = [0; REGISTERS];
        self.touches.clear();
        self.stores.fill(NONE);
        self.fills.fill(NONE);
        self.parts = [0; EVENTS];
    }

    /// Record that the instruction at `place` of the running block accesses memory.
    #[inline(always)]
    pub fn touch(&mut self, place: u16, address: u64, is_store: bool, reach: Reach) {
        if self.touches.len() < MOST_TOUCHES {
            self.touches.push(Touch { place, is_store, reach, word: address >> 3 });
        }
    }

    /// End the block that ran until now.
    #[inline]
    pub fn block(&mut self, ops: &[Op], counts: &mut Counts) {
        let mut next = 0;
        for (place, op) in ops.iter().enumerate() {
            if op.kind == Kind::Rep {
                continue;
            }
            let step = if op.is_fused { 0 } else { self.step };
            self.dispatched = (self.dispatched + step).max(self.window[self.at]);
            self.dispatched = self.waiting.room_from(self.dispatched);
            self.owed += step;
            let mut start = op
                .sources
                .iter()
                .fold(self.dispatched, |time, source| time.max(self.ready[*source as usize % REGISTERS]));
            let (mut reach, mut soonest, mut stored) = (Reach::default(), self.dispatched, None);
            while let Some(touch) = self.touches.get(next).copied() {
                match usize::from(touch.place).cmp(&place) {
                    std::cmp::Ordering::Greater => break,
                    std::cmp::Ordering::Equal if touch.is_store => stored = Some(touch.word),
                    std::cmp::Ordering::Equal => {
                        soonest = self.dispatched + self.latencies.load;
                        let loaded;
                        (loaded, reach) = self.load(op, touch);
                        start = start.max(loaded);
                    }
                    std::cmp::Ordering::Less => {}
                }
                next += 1;
            }
            start = self.unit(op, start);
            self.waiting.until(start);
            self.done = start + u64::from(op.latency) * CYCLE;
            for target in op.targets {
                self.ready[target as usize % REGISTERS] = self.done;
            }
            if reach.level > 0 || self.missed != 0 {
                self.remember_miss(op, reach.level > 0);
            }
            if let Some(key) = stored {
                self.stores[key as usize % REMEMBERED] = Coming { key, time: self.done, reach, spelt: op.spelt };
            }
            let starved = std::mem::take(&mut self.starved);
            if self.done > self.retired {
                self.advance(reach, start > soonest, starved, counts);
            }
            self.window[self.at] = self.retired;
            self.at = if self.at + 1 == self.window.len() { 0 } else { self.at + 1 };
            if op.kind == Kind::Fence {
                self.delay(self.retired + self.latencies.fence, Event::stall_fences);
            }
        }
        self.touches.clear();
    }

    /// Remember whether what an instruction writes comes out of a load that missed.
    fn remember_miss(&mut self, op: &Op, has_missed: bool) {
        let comes_of_miss = has_missed || self.has_missed(&op.sources) || self.has_missed(&op.address);
        for target in op.targets {
            self.missed = self.missed & !(1 << target) | u32::from(comes_of_miss) << target;
        }
        self.missed &= !(1 << NOWHERE);
    }

    fn has_missed(&self, registers: &[u8]) -> bool {
        registers.iter().any(|register| self.missed >> register & 1 == 1)
    }

    /// Return when a load has its data, and where it was found.
    #[inline(always)]
    fn load(&mut self, op: &Op, touch: Touch) -> (u64, Reach) {
        let [one, other] = op.address;
        let asked =
            self.dispatched.max(self.ready[one as usize % REGISTERS]).max(self.ready[other as usize % REGISTERS]);
        let store = self.stores[touch.word as usize % REMEMBERED];
        if store.key == touch.word && op.kind != Kind::Locked && store.time + FORWARDED_WITHIN > asked {
            // An address that is spelt alike is known to be the same before it is computed.
            let forward = if store.spelt == op.spelt { CYCLE } else { self.latencies.forward };
            let asked = if store.spelt == op.spelt { self.dispatched } else { asked + self.latencies.load };
            return (asked.max(store.time + forward), Reach::default());
        }
        // A line that is on its way isn't fetched again.
        let line = touch.word >> 3;
        let reach = Reach {
            is_chained: self.has_missed(&op.address) && asked > self.dispatched + 2 * self.latencies.load,
            ..touch.reach
        };
        let translated = asked + self.latencies.translation[usize::from(touch.reach.translation)];
        let fill = &mut self.fills[line as usize % REMEMBERED];
        if touch.reach.level > 0 {
            let time = translated + self.latencies.level[usize::from(touch.reach.level)];
            *fill = Coming { key: line, time, reach, spelt: 0 };
        }
        if fill.key == line && fill.time > translated {
            return (fill.time + self.latencies.load, fill.reach);
        }
        (translated + self.latencies.load, reach)
    }

    /// Return when an instruction that could start has gone through a unit that there is one of.
    #[inline(always)]
    fn unit(&mut self, op: &Op, start: u64) -> u64 {
        match op.kind {
            Kind::Plain if !op.is_fused => {
                self.alu = self.alu.max(self.dispatched.saturating_sub(ALU_SLACK)) + self.alu_step;
                start.max(self.alu)
            }
            Kind::Plain | Kind::Move | Kind::Rep => start,
            Kind::Divide => {
                let start = start.max(self.divider);
                self.divider = start + self.latencies.divide / 2;
                start + self.latencies.divide
            }
            Kind::Locked => {
                self.lock = start.max(self.lock + self.latencies.locked);
                self.lock
            }
            Kind::Fence => start.max(self.retired),
        }
    }

    /// Retire the latest instruction, later than the one before.
    #[inline(always)]
    fn advance(&mut self, reach: Reach, waited: bool, starved: u64, counts: &mut Counts) {
        let advance = self.done - self.retired;
        self.retired = self.done;
        let paid = advance.min(self.owed);
        self.owed -= paid;
        if advance > paid {
            if waited {
                return self.stalled(self.waited_for(reach), advance - paid, counts);
            }
            let starved = starved.min(advance - paid);
            self.stalled(Event::stall_fetch, starved, counts);
            let event = self.late.take().unwrap_or(Event::stall_dependencies);
            self.stalled(event, advance - paid - starved, counts);
        }
    }

    #[inline(always)]
    fn stalled(&mut self, event: Event, time: u64, counts: &mut Counts) {
        let parts = self.parts[event as usize] + time;
        counts[event as usize] += parts / CYCLE;
        self.parts[event as usize] = parts % CYCLE;
    }

    fn waited_for(&self, reach: Reach) -> Event {
        let (level, translation) = (usize::from(reach.level), usize::from(reach.translation));
        let is_translation = self.latencies.translation[translation] > self.latencies.level[level];
        if is_translation { Event::stall_translation } else { STALLS[level][usize::from(reach.is_chained)] }
    }

    /// Return when what comes next is dispatched at the earliest.
    #[inline(always)]
    pub fn dispatched(&self) -> u64 {
        self.dispatched
    }

    fn delay(&mut self, until: u64, why: Event) {
        if until > self.dispatched {
            self.dispatched = until;
            self.late = Some(why);
        }
    }

    /// Record that the branch that ends the latest block went where it wasn't expected to go.
    pub fn mispredicted(&mut self) {
        self.delay(self.done + self.latencies.mispredicted, Event::stall_branches);
    }

    /// Record that the front end has the next block's instructions from a time on.
    #[inline(always)]
    pub fn fetched(&mut self, time: u64) {
        if time > self.dispatched {
            self.starved += time - self.dispatched;
            self.dispatched = time;
        }
    }
}

#[cfg(test)]
mod tests;
