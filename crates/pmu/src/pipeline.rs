//! How long an out-of-order processor would wait, and for what.
//!
//! Instructions are dispatched in order, `width` a cycle, as long as fewer than `window` are in flight and fewer than
//! `scheduler` wait; each starts when what it reads is ready, and all retire in order. What makes one retire later than
//! dispatch alone would is a stall, counted in cycles by its reason. (Karkhanis, Smith: A first-order superscalar
//! processor model, ISCA 2004; Eyerman et al.: A performance counter architecture for computing accurate CPI
//! components, ASPLOS 2006.) Execution units are taken in any order; the divider and locked instructions follow one
//! another; stores are put into the cache in order, and wait for that in a queue. A load of what waits there gets it at
//! once, or is renamed to it.

use crate::events::{Counts, EVENTS, Event};
use crate::geometry::{self, Geometry};
use crate::hardware::Reach;
use crate::units::{ACCESS, FORWARD, LOAD, Needs, Units};
use crate::waiting::Waiting;
use kdyno_model::CYCLE;

/// General registers are 0 to 15.
pub const RDX: u8 = 2;
pub const FLAGS: u8 = 16;
/// Always ready.
pub const NOTHING: u8 = 17;
/// Nobody reads it.
pub const NOWHERE: u8 = 18;
/// Bits of a number of a register.
const REGISTERS: usize = 32;

/// Words that were stored, and lines that are on their way, are remembered by so many low bits of their address.
const REMEMBERED: usize = 256;
const MOST_TOUCHES: usize = 512;
const NO_WORD: u64 = u64::MAX;
/// Two stores so many words apart, in one line, go into the cache together.
const TOGETHER: u64 = 2;
/// Bytes of a line.
const LINE: u64 = 64;
/// From one line that the first cache takes to the next: 32 bytes a cycle, as measured on a Zen 4, in every family.
const LINE_TIME: u64 = 2 * CYCLE;

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
    /// What it does with what it loads, if it does.
    pub load_use: LoadUse,
    /// The register, if not `NOWHERE`, that is written a cycle after the others.
    pub late: u8,
    /// How many operations it is; 0: it is one with the instruction before, as a comparison and its jump are.
    pub slots: u8,
    /// The units that it needs, without those of its accesses to memory.
    pub needs: Needs,
    pub kind: Kind,
}

/// What an instruction does with what it loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadUse {
    /// Moves it into a register as it is.
    Moved,
    /// Stores what it makes of it in its place.
    Updated,
    Used,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Plain,
    /// Looks for a set bit, or counts them.
    Scan,
    Divide,
    /// Starts when everything before is done, and nothing after it starts before it is done.
    Fence,
    Locked,
    /// A sequence of operations that nothing else is dispatched beside.
    Microcode,
    /// A REP string instruction: timed as a whole, by its bytes.
    Rep(Strings),
}

/// What a REP string instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strings {
    Moved,
    /// Eight bytes at a time.
    MovedByWords,
    Stored,
    /// Four or eight bytes at a time.
    StoredByWords,
}

#[derive(Clone, Copy)]
struct Touch {
    place: u16,
    is_store: bool,
    reach: Reach,
    bytes: Bytes,
    /// It reaches into another line.
    is_split: bool,
}

impl Touch {
    fn line(&self) -> u64 {
        self.bytes.word >> 3
    }
}

/// Bytes of one aligned word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bytes {
    word: u64,
    /// A bit for each byte of the word.
    mask: u8,
}

impl Bytes {
    /// Return the bytes in the word that an access begins in.
    fn new(address: u64, size: u64) -> Bytes {
        let size_mask = 1_u16.checked_shl(size as u32).map_or(u16::MAX, |end| end.wrapping_sub(1));
        Bytes { word: address >> 3, mask: (size_mask << (address & 7)) as u8 }
    }
}

/// A line, and when its data are there.
#[derive(Clone, Copy)]
struct Coming {
    line: u64,
    time: u64,
    reach: Reach,
}

const NO_LINE: Coming =
    Coming { line: u64::MAX, time: 0, reach: Reach { level: 0, is_ahead: false, is_chained: false, translation: 0 } };

/// What was stored, when its data were there, and when it is in the cache.
#[derive(Clone, Copy)]
struct Stored {
    bytes: Bytes,
    time: u64,
    drained: u64,
    /// A load got it already.
    is_known: bool,
}

const NOTHING_STORED: Stored =
    Stored { bytes: Bytes { word: u64::MAX, mask: 0 }, time: 0, drained: 0, is_known: false };
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
    latencies: Latencies,
    dispatch_time: u64,
    retired: u64,
    /// When the latest instruction's result was there.
    result_time: u64,
    /// When the latest load was through, if something else had its result before.
    check_time: u64,
    /// When each of the latest `window` instructions retired.
    window: Vec<u64>,
    window_place: usize,
    ready: [u64; REGISTERS],
    /// Registers, by bit, whose values come out of loads that missed the first cache.
    missed: u32,
    waiting: Waiting,
    units: Units,
    /// When each of the latest stores is in the cache, as many as can wait for that.
    queue: Vec<u64>,
    queue_place: usize,
    /// When the latest store is in the cache.
    drained: u64,
    /// The word that it stored.
    drained_word: u64,
    reps: [Rep; 4],
    /// Bytes of the REP string instruction that runs.
    rep_bytes: u64,
    /// When the first cache can take the next line.
    next_line: u64,
    /// When the next is free of what there is one of.
    divider: u64,
    lock: u64,
    /// Time for dispatch that no progress has paid for yet.
    owed: u64,
    /// Why nothing was dispatched for a while.
    late: Option<Event>,
    /// And for how long the front end was why.
    starved: u64,
    touches: Vec<Touch>,
    stores: Vec<Stored>,
    fills: Vec<Coming>,
    /// Parts of cycles of each event that don't make a whole one yet.
    parts: [u64; EVENTS],
}

struct Latencies {
    load: u64,
    forward: u64,
    renamed: u64,
    level: [u64; 4],
    translation: [u64; 3],
    mispredicted: u64,
    /// Beyond one cycle.
    scan: u64,
    divide: u64,
    locked: u64,
    fence: u64,
}

/// How long a kind of REP string instructions takes.
#[derive(Clone, Copy)]
struct Rep {
    short: u64,
    short_bytes: u64,
    long: u64,
    byte: u64,
}

impl Rep {
    fn new(size: &geometry::Rep) -> Rep {
        Rep {
            short: size.short * CYCLE,
            short_bytes: size.short_bytes,
            long: size.long * CYCLE,
            byte: CYCLE / size.bytes,
        }
    }
}

impl Pipeline {
    pub fn new(geometry: &Geometry) -> Pipeline {
        let (latency, reps) = (&geometry.latency, &geometry.rep);
        let extra_time = |cycles: u64| cycles.saturating_sub(latency.l1) * CYCLE;
        let latencies = Latencies {
            load: latency.l1 * CYCLE,
            forward: latency.forward * CYCLE,
            renamed: latency.renamed * CYCLE,
            level: [0, extra_time(latency.l2), extra_time(latency.llc), extra_time(latency.memory)],
            translation: [0, latency.stlb * CYCLE, latency.walk * CYCLE],
            mispredicted: latency.mispredicted * CYCLE,
            scan: (latency.scan - 1) * CYCLE,
            divide: latency.divide * CYCLE,
            locked: latency.locked * CYCLE,
            fence: latency.fence * CYCLE,
        };
        Pipeline {
            step: CYCLE / u64::from(geometry.width),
            latencies,
            dispatch_time: 0,
            retired: 0,
            result_time: 0,
            check_time: 0,
            window: vec![0; geometry.window],
            window_place: 0,
            ready: [0; REGISTERS],
            missed: 0,
            waiting: Waiting::new(geometry.scheduler),
            units: Units::new(&geometry.units),
            queue: vec![0; geometry.units.store_queue],
            queue_place: 0,
            drained: 0,
            drained_word: NO_WORD,
            reps: [&reps.moves, &reps.word_moves, &reps.stores, &reps.word_stores].map(Rep::new),
            rep_bytes: 0,
            next_line: 0,
            divider: 0,
            lock: 0,
            owed: 0,
            late: None,
            starved: 0,
            touches: Vec::with_capacity(MOST_TOUCHES),
            stores: vec![NOTHING_STORED; REMEMBERED],
            fills: vec![NO_LINE; REMEMBERED],
            parts: [0; EVENTS],
        }
    }

    /// Reset the pipeline at the start of a region: nothing is in flight.
    pub fn reset(&mut self) {
        (self.dispatch_time, self.retired, self.result_time, self.owed, self.late) = (0, 0, 0, 0, None);
        (self.check_time, self.next_line) = (0, 0);
        (self.divider, self.lock, self.missed, self.starved, self.rep_bytes) = (0, 0, 0, 0, 0);
        self.units.reset();
        self.queue.fill(0);
        (self.drained, self.drained_word) = (0, NO_WORD);
        self.window.fill(0);
        self.waiting.reset();
        self.ready = [0; REGISTERS];
        self.touches.clear();
        self.stores.fill(NOTHING_STORED);
        self.fills.fill(NO_LINE);
        self.parts = [0; EVENTS];
    }

    /// Record that the instruction at `place` of the running block accesses memory.
    #[inline(always)]
    pub fn touch(&mut self, place: u16, address: u64, size: u64, is_store: bool, reach: Reach) {
        if self.touches.len() < MOST_TOUCHES {
            let is_split = address % LINE + size > LINE;
            self.touches.push(Touch { place, is_store, reach, bytes: Bytes::new(address, size), is_split });
        }
    }

    /// Record that the REP string instruction at the end of the running block stores bytes, or loads them.
    #[inline(always)]
    pub fn rep_bytes(&mut self, size: u64) {
        self.rep_bytes += size;
    }

    /// End the REP string instruction that was the last of a block. Its microcode takes the place of other instructions
    /// in dispatch, and waits for nothing.
    pub fn end_rep(&mut self, strings: Strings) {
        let bytes = std::mem::take(&mut self.rep_bytes);
        let rep = self.reps[strings as usize];
        let time = if bytes <= rep.short_bytes { rep.short } else { rep.long + bytes * rep.byte };
        self.delay_until(self.dispatch_time + time, Event::stall_rep);
    }

    /// End the block that ran until now.
    #[inline]
    pub fn block(&mut self, ops: &[Op], counts: &mut Counts) {
        let (mut next, mut slots) = (0, 0);
        for (place, op) in ops.iter().enumerate() {
            if matches!(op.kind, Kind::Rep(_)) {
                continue;
            }
            let step = u64::from(op.slots) * self.step;
            slots += u64::from(op.slots);
            self.dispatch_time = (self.dispatch_time + step).max(self.window[self.window_place]);
            self.dispatch_time = self.waiting.room_from(self.dispatch_time);
            self.units.forget_before(self.dispatch_time);
            self.owed += step;
            let mut start = self.ready_from(self.dispatch_time, &op.sources);
            let (mut reach, mut soonest, mut store, mut is_load) = (Reach::default(), self.dispatch_time, None, false);
            while let Some(touch) = self.touches.get(next).copied() {
                match usize::from(touch.place).cmp(&place) {
                    std::cmp::Ordering::Greater => break,
                    std::cmp::Ordering::Equal if touch.is_store => {
                        self.dispatch_time = self.dispatch_time.max(self.queue[self.queue_place]);
                        // What is loaded and stored again has one address.
                        if !is_load {
                            let addressed = self.ready_from(self.dispatch_time, &op.address);
                            start = start.max(self.units.take(ACCESS, addressed));
                        }
                        store = Some(touch);
                    }
                    std::cmp::Ordering::Equal => {
                        is_load = true;
                        soonest = self.dispatch_time + self.latencies.load;
                        let arrival;
                        (arrival, reach) = self.load(op, touch);
                        start = start.max(arrival);
                    }
                    std::cmp::Ordering::Less => {}
                }
                next += 1;
            }
            start = self.unit(op, start);
            self.waiting.add(start);
            self.result_time = start + u64::from(op.latency) * CYCLE;
            for target in op.targets {
                self.ready[target as usize % REGISTERS] = self.result_time;
            }
            self.ready[op.late as usize % REGISTERS] = self.result_time + CYCLE;
            if reach.level > 0 || self.missed != 0 {
                self.remember_miss(op, reach.level > 0);
            }
            let starved = std::mem::take(&mut self.starved);
            if self.result_time.max(self.check_time) > self.retired {
                self.advance(reach, start > soonest, starved, counts);
            }
            if let Some(touch) = store {
                self.store(touch);
            }
            self.window[self.window_place] = self.retired;
            self.window_place = if self.window_place + 1 == self.window.len() { 0 } else { self.window_place + 1 };
            match op.kind {
                Kind::Fence => self.delay_until(self.retired + self.latencies.fence, Event::stall_fences),
                Kind::Microcode => {
                    self.delay_until(
                        self.dispatch_time + u64::from(op.latency) * CYCLE - step,
                        Event::stall_dependencies,
                    );
                }
                _ => {}
            }
        }
        self.touches.clear();
        counts[Event::slots as usize] += slots;
    }

    /// Return when all of some registers are there, not before a time.
    #[inline(always)]
    fn ready_from(&self, time: u64, registers: &[u8]) -> u64 {
        registers.iter().fold(time, |time, register| time.max(self.ready[*register as usize % REGISTERS]))
    }

    /// Put what the latest instruction stored into the queue, which it leaves after those before it: one in a cycle, or
    /// two that are near.
    #[inline(always)]
    fn store(&mut self, touch: Touch) {
        let (bytes, previous) = (touch.bytes, self.drained_word);
        let is_near = bytes.word >> 3 == previous >> 3 && bytes.word.abs_diff(previous) <= TOGETHER;
        let step = match touch.is_split {
            true => 2 * CYCLE,
            false if is_near => CYCLE / 2,
            false => CYCLE,
        };
        let mut drained = self.retired.max(self.drained + step);
        if touch.reach.is_new() {
            drained = drained.max(self.take_line());
        }
        (self.drained, self.drained_word) = (drained, bytes.word);
        self.queue[self.queue_place] = drained;
        self.queue_place = if self.queue_place + 1 == self.queue.len() { 0 } else { self.queue_place + 1 };
        self.stores[bytes.word as usize % REMEMBERED] =
            Stored { bytes, time: self.result_time, drained, is_known: false };
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
        let mut request_time = self.units.take(LOAD | ACCESS, self.ready_from(self.dispatch_time, &op.address));
        if touch.is_split {
            request_time = self.units.take(LOAD | ACCESS, request_time + CYCLE);
        }
        let (bytes, store) = (touch.bytes, self.stores[touch.bytes.word as usize % REMEMBERED]);
        let is_stored = store.bytes.word == bytes.word && store.bytes.mask & bytes.mask != 0;
        // A locked instruction waits for the cache anyway, and is late only where a store has part of what it needs.
        let is_complete = bytes.mask & !store.bytes.mask == 0;
        if is_stored && store.drained > request_time && !(op.kind == Kind::Locked && is_complete) {
            return (self.forward(op, bytes, store, request_time), Reach::default());
        }
        // A line that is on its way isn't fetched again.
        let line = touch.line();
        let reach = Reach {
            is_chained: self.has_missed(&op.address) && request_time > self.dispatch_time + 2 * self.latencies.load,
            ..touch.reach
        };
        let translated = request_time + self.latencies.translation[usize::from(touch.reach.translation)];
        if touch.reach.is_new() {
            let time = translated.max(self.take_line()) + self.latencies.level[usize::from(touch.reach.level)];
            self.fills[line as usize % REMEMBERED] = Coming { line, time, reach };
        }
        let fill = self.fills[line as usize % REMEMBERED];
        if fill.line == line && fill.time > translated {
            return (fill.time + self.latencies.load, fill.reach);
        }
        (translated + self.latencies.load, reach)
    }

    /// Let the first cache take one more line, and return when it can.
    #[inline(always)]
    fn take_line(&mut self) -> u64 {
        self.next_line = self.next_line.max(self.dispatch_time) + LINE_TIME;
        self.next_line
    }

    /// Return when a load has what waits for the cache, asked for at a time. The processor expects that a load which got
    /// it before gets it again: it need not know the address for that.
    fn forward(&mut self, op: &Op, bytes: Bytes, store: Stored, request_time: u64) -> u64 {
        if bytes.mask & !store.bytes.mask != 0 {
            // Part of it is in the cache only: it waits until all of it is.
            return request_time.max(store.drained) + 2 * self.latencies.forward + self.latencies.load;
        }
        let is_free = store.is_known || op.load_use == LoadUse::Updated;
        let request_time = if is_free { request_time } else { self.units.take(FORWARD, request_time) };
        self.stores[bytes.word as usize % REMEMBERED].is_known = true;
        if op.load_use != LoadUse::Used && bytes.mask.trailing_zeros() == store.bytes.mask.trailing_zeros() {
            self.check_time = request_time.max(store.time);
            return self.dispatch_time.max(store.time) + self.latencies.renamed;
        }
        (request_time + self.latencies.load).max(store.time + self.latencies.forward)
    }

    /// Return when an instruction that could start has gone through the units that it needs.
    #[inline(always)]
    fn unit(&mut self, op: &Op, start: u64) -> u64 {
        match op.kind {
            Kind::Plain if op.needs != 0 => self.units.take(op.needs, start),
            Kind::Plain | Kind::Rep(_) | Kind::Microcode => start,
            Kind::Scan => self.units.take(op.needs, start) + self.latencies.scan,
            Kind::Divide => {
                let start = start.max(self.divider);
                self.divider = start + self.latencies.divide * 2 / 3;
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
        let finished = self.result_time.max(self.check_time);
        let advance = finished - self.retired;
        self.retired = finished;
        let paid = advance.min(self.owed);
        self.owed -= paid;
        if advance > paid {
            if waited {
                return self.add_stall(self.stall_event(reach), advance - paid, counts);
            }
            let starved = starved.min(advance - paid);
            self.add_stall(Event::stall_fetch, starved, counts);
            let event = self.late.take().unwrap_or(Event::stall_dependencies);
            self.add_stall(event, advance - paid - starved, counts);
        }
    }

    #[inline(always)]
    fn add_stall(&mut self, event: Event, time: u64, counts: &mut Counts) {
        let parts = self.parts[event as usize] + time;
        counts[event as usize] += parts / CYCLE;
        self.parts[event as usize] = parts % CYCLE;
    }

    fn stall_event(&self, reach: Reach) -> Event {
        let (level, translation) = (usize::from(reach.level), usize::from(reach.translation));
        let is_translation = self.latencies.translation[translation] > self.latencies.level[level];
        if is_translation { Event::stall_translation } else { STALLS[level][usize::from(reach.is_chained)] }
    }

    /// Return when what comes next is dispatched at the earliest.
    #[inline(always)]
    pub fn dispatch_time(&self) -> u64 {
        self.dispatch_time
    }

    fn delay_until(&mut self, time: u64, event: Event) {
        if time > self.dispatch_time {
            self.dispatch_time = time;
            self.late = Some(event);
        }
    }

    /// Record that the branch that ends the latest block went where it wasn't expected to go.
    pub fn record_misprediction(&mut self) {
        self.delay_until(self.result_time + self.latencies.mispredicted, Event::stall_branches);
    }

    /// Record that the front end has the next block's instructions from a time on.
    #[inline(always)]
    pub fn record_fetch(&mut self, time: u64) {
        if time > self.dispatch_time {
            self.starved += time - self.dispatch_time;
            self.dispatch_time = time;
        }
    }
}

#[cfg(test)]
mod tests;
