//! The hot path: what happens at each block and at each access to memory inside a measured region.

use crate::block::{Action, Arrival, Block, Blocks, FunctionCounts, Link, UserBlock, link};
use crate::decode::{Access, Exit, RepBytes};
use crate::events::{Context, Counts, EVENTS, Event};
use crate::frontend::Frontend;
use crate::geometry::Geometry;
use crate::hardware::{Hardware, Place};
use crate::limits::{Excess, Thing};
use crate::pipeline::Pipeline;
use crate::predictor::Predictor;
use crate::region::{Identity, Range, Regions};
use crate::stacks::{Node, Task, Tasks};
use crate::trace::{Trace, Way};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

pub struct Counter {
    /// Inside a region.
    pub active: bool,
    /// It is a warm-up: it goes through caches, TLBs and predictor, is not timed, and counts nothing.
    is_warming: bool,
    /// The block before; the outside one while user code runs.
    previous: *mut Block,
    outside: *mut Block,
    previous_user: *const UserBlock,
    task: Task,
    tasks: Tasks,
    root: *mut Node,
    detail: Option<Detail>,
    trace: Option<Trace>,
    /// User code's accesses to memory are looked at, too.
    sees_user_accesses: bool,
    /// What warm-ups count, for nobody.
    unread: Counts,
    pub counted: Counted,
    pub blocks: Blocks,
    /// Where the running task's stack pointer was put.
    switched_from: u64,
    /// Bits that were announced.
    word: u32,
    identity: Option<Identity>,
    regions: Regions,
    opened: u64,
}

/// What has counts since the benchmark began; the counts themselves are in links and functions.
#[derive(Default)]
pub struct Counted {
    pub links: Vec<*mut Link>,
    pub functions: Vec<*mut FunctionCounts>,
    pub aborted: FxHashMap<Aborted, Times>,
    /// Since the iteration began.
    pub user_instructions: u64,
    pub user_rep_iterations: u64,
    /// Of its accesses, in the columns of the kernel's own events.
    pub user: UserCounts,
}

/// The counts of user code's accesses, since the iteration began.
pub struct UserCounts(pub Counts);

impl Default for UserCounts {
    fn default() -> UserCounts {
        UserCounts([0; EVENTS])
    }
}

/// A block that an exception broke off, and where it was taken up again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Aborted {
    pub block: *const Block,
    pub context: Context,
    pub again: u64,
}

/// How often something happened.
#[derive(Clone, Copy, Default)]
pub struct Times {
    /// Since the benchmark began.
    pub count: u64,
    /// What that was when the iteration began.
    pub before: u64,
}

/// What `events=all` adds.
struct Detail {
    pipeline: Pipeline,
    hardware: Hardware,
    frontend: Frontend,
    predictor: Predictor,
}

impl Counter {
    /// A trace is kept, and user code's accesses are looked at, only where there is a geometry.
    pub fn new(mut blocks: Blocks, geometry: Option<&Geometry>, is_traced: bool, sees_user_accesses: bool) -> Counter {
        let counts = blocks.function_counts(0).expect("nothing took room before");
        let outside: *mut Block = Box::leak(Box::new(Block::outside(counts)));
        let root = Node::root();
        Counter {
            active: false,
            is_warming: false,
            previous: outside,
            outside,
            previous_user: std::ptr::null(),
            task: Task::new(root),
            tasks: Tasks::default(),
            root,
            detail: geometry.map(|geometry| Detail {
                pipeline: Pipeline::new(geometry),
                hardware: Hardware::new(geometry),
                frontend: Frontend::new(geometry),
                predictor: Predictor::new(&geometry.predictor),
            }),
            trace: is_traced.then(Trace::default),
            sees_user_accesses,
            unread: [0; EVENTS],
            counted: Counted::default(),
            blocks,
            switched_from: 0,
            word: 0,
            identity: None,
            regions: Regions::default(),
            opened: 0,
        }
    }

    pub fn is_detailed(&self) -> bool {
        self.detail.is_some()
    }

    /// There was too much of something: counts from here on would be wrong, so there are none. For good.
    pub fn has_given_up(&self) -> bool {
        self.blocks.room.is_exceeded()
    }

    /// To be called after whatever takes room.
    #[inline(always)]
    fn heed_limits(&mut self) {
        if self.has_given_up() {
            self.active = false;
        }
    }

    /// [`Blocks::intern`] for a block that was translated just now.
    pub fn intern(&mut self, start: u64, bytes: &[u8]) -> Option<*mut Block> {
        let block = self.blocks.intern(start, bytes);
        self.heed_limits();
        if self.sees_user_accesses
            && self.blocks.makes_large_pages
            && let Some(detail) = &mut self.detail
        {
            detail.hardware.tell_pages();
        }
        block
    }

    /// The same for user code, while a kernel is counted.
    pub fn intern_user(&mut self, addresses: &[u64], bytes: &[u8]) -> Option<*mut UserBlock> {
        let block = self.blocks.intern_user(addresses, bytes);
        self.heed_limits();
        block
    }

    /// A block of counted code begins.
    ///
    /// # Safety
    /// `block` came from [`Blocks::intern`].
    #[inline(always)]
    pub unsafe fn block(&mut self, block: *mut Block) {
        let previous = std::mem::replace(&mut self.previous, block);
        let context = self.task.context;
        // SAFETY: blocks and links are never freed, and one virtual CPU calls this.
        unsafe {
            if self.is_warming {
                self.blocks.prepare(&mut *block);
                self.unmeasured(block);
            } else {
                self.step(previous, block);
            }
        }
        // Not any more, if the block was one too many.
        if self.detail.is_some() && self.active {
            // SAFETY: as above.
            unsafe { self.in_detail(previous, context, block) };
        }
    }

    /// A block of counted code begins outside of all regions: in the boot, between benchmarks, in a warm-up.
    ///
    /// # Safety
    /// `block` came from [`Blocks::intern`].
    #[inline(always)]
    pub unsafe fn unmeasured(&mut self, block: *mut Block) {
        // SAFETY: as promised; blocks are never freed, and one virtual CPU calls this.
        unsafe { (*block).unmeasured += 1 };
    }

    /// # Safety
    /// Both are blocks.
    #[inline(always)]
    unsafe fn step(&mut self, previous: *mut Block, block: *mut Block) {
        // SAFETY: as promised.
        unsafe {
            let slots = &(*previous).slots;
            let link = if std::ptr::eq(slots[0].to, block) {
                slots[0].link
            } else if std::ptr::eq(slots[1].to, block) {
                slots[1].link
            } else if let Some(link) = self.find(previous, block) {
                link
            } else {
                return;
            };
            (*link).counts[self.task.context as usize] += 1;
            if (*link).action != Action::Nothing {
                self.act(link);
            }
        }
    }

    #[cold]
    unsafe fn find(&mut self, previous: *mut Block, block: *mut Block) -> Option<*mut Link> {
        // SAFETY: both are blocks.
        unsafe {
            self.blocks.prepare(&mut *block);
            if self.detail.is_some() && !self.has_counts(&mut *block) {
                self.heed_limits();
                return None;
            }
            let link = link(previous, block, &mut self.blocks.room);
            self.heed_limits();
            let link = link?;
            if !(*link).touched {
                (*link).touched = true;
                self.counted.links.push(link);
            }
            for function in [(*previous).counts, (*block).counts] {
                if self.detail.is_some() && !(*function).touched {
                    (*function).touched = true;
                    self.counted.functions.push(function);
                }
            }
            Some(link)
        }
    }

    /// Makes place for what is counted of a block's function; false if there is no room for it.
    fn has_counts(&mut self, block: &mut Block) -> bool {
        if block.counts.is_null() {
            let Some(counts) = self.blocks.function_counts(block.function) else {
                return false;
            };
            block.counts = counts;
        }
        true
    }

    /// The link's count is already made, in the context before.
    unsafe fn act(&mut self, link: *mut Link) {
        // SAFETY: a link and its blocks are never freed.
        let (link, from, to) = unsafe { (&mut *link, &mut *(*link).from, &mut *(*link).to) };
        let room = &mut self.blocks.room;
        match link.action {
            Action::Nothing | Action::Restart => {}
            Action::RepIteration if self.detail.is_none() => {}
            // The instruction was counted when it began.
            // SAFETY: nodes are never freed.
            Action::RepIteration => unsafe {
                let node = &mut *self.task.node;
                node.instructions = node.instructions.wrapping_sub(1);
            },
            Action::Call if self.detail.is_some() => self.task.call(from, to, room),
            Action::Return if to.is_fork => self.task.restart(self.root, to.function, room),
            Action::Return if self.detail.is_some() => self.task.returned(from, to, self.root, room),
            Action::Transfer if self.detail.is_some() => self.task.transfer(to.function, room),
            Action::Call | Action::Return | Action::Transfer => {}
            Action::Enter(arrival) => {
                // The entry's own work belongs to what is entered.
                link.counts[self.task.context as usize] -= 1;
                self.enter(from, to, arrival);
                link.counts[self.task.context as usize] += 1;
            }
            Action::TrapReturn => {
                link.counts[self.task.context as usize] -= 1;
                // SAFETY: `to` is a block.
                unsafe { self.trap_return(to) };
            }
        }
        self.heed_limits();
    }

    fn enter(&mut self, from: &mut Block, to: &Block, arrival: Arrival) {
        if !from.is_outside() {
            return self.task.trap(from, to.function, arrival == Arrival::Exception, &mut self.blocks.room);
        }
        let context = match arrival {
            Arrival::Syscall => Context::Task,
            Arrival::Exception => Context::Exception,
            Arrival::Interrupt => Context::Interrupt,
        };
        self.task.faulted = if arrival == Arrival::Exception { self.previous_user } else { std::ptr::null() };
        self.task.enter(to.function, context, &mut self.blocks.room);
    }

    /// Behind iret to kernel code: what was broken off goes on.
    unsafe fn trap_return(&mut self, to: &mut Block) {
        let there = to.facts.start;
        if let Some(trap) = self.task.resume() {
            // SAFETY: blocks are never freed.
            let interrupted = unsafe { &*trap.interrupted };
            let is_again = trap.is_exception && interrupted.holds(there);
            if !is_again && !interrupted.is_outside() {
                // SAFETY: both are blocks.
                return unsafe { self.step(trap.interrupted, to) };
            }
            if is_again {
                let (block, context) = (trap.interrupted.cast_const(), trap.context);
                let aborted = &mut self.counted.aborted;
                aborted.entry(Aborted { block, context, again: there }).or_default().count += 1;
                // What was one too many is there, and nobody will look at it.
                let _ = self.blocks.room.holds(Thing::broken_off, aborted.len());
            }
        }
        // SAFETY: both are blocks.
        unsafe { self.step(self.outside, to) };
    }

    /// A block of user code begins, while a kernel is counted.
    #[inline(always)]
    pub fn user_block(&mut self, block: &UserBlock) {
        if self.sees_user_accesses {
            self.user_fetch(block);
        }
        if self.is_warming {
            self.previous = self.outside;
            return;
        }
        if self.previous != self.outside {
            self.previous = self.outside;
            self.task.leave(self.root);
            // SAFETY: user blocks are never freed.
            if let Some(faulted) = unsafe { std::mem::replace(&mut self.task.faulted, std::ptr::null()).as_ref() } {
                let again = faulted.instructions.iter().filter(|address| **address >= block.start).count();
                if faulted.instructions.contains(&block.start) {
                    self.counted.user_instructions = self.counted.user_instructions.wrapping_sub(again as u64);
                }
            }
        }
        // SAFETY: as above.
        let goes_on =
            unsafe { self.previous_user.as_ref() }.is_some_and(|before| before.is_rep && before.last == block.start);
        if goes_on {
            self.counted.user_rep_iterations += 1;
        } else {
            self.counted.user_instructions += block.instructions.len() as u64;
        }
        self.previous_user = block;
    }

    /// `context` is that in which `previous` ran.
    #[inline(always)]
    unsafe fn in_detail(&mut self, previous: *mut Block, context: Context, block: *mut Block) {
        let detail = self.detail.as_mut().expect("asked before");
        // SAFETY: blocks, nodes and functions are never freed.
        let (before, now) = unsafe { (&*previous, &*block) };
        let (is_warming, unread) = (self.is_warming, &raw mut self.unread);
        let counts_of = |block: &Block, context: Context| -> *mut Counts {
            if is_warming {
                return unread;
            }
            // SAFETY: functions are never freed.
            unsafe { &raw mut (*block.counts).counts[context as usize] }
        };
        // SAFETY: as above; the two are used one after the other.
        let counts = unsafe { &mut *counts_of(before, context) };
        if !is_warming {
            detail.pipeline.block(&before.facts.ops, counts);
        }
        if let Some(flush) = before.facts.flush {
            detail.hardware.flush(flush);
        }
        // A REP string instruction that goes on is there already.
        if before.facts.exit != Exit::Rep || now.facts.start != before.facts.last {
            let way = detail.follow(before, now, counts);
            let dispatched = detail.pipeline.dispatched();
            // SAFETY: as above.
            detail.fetch(now, unsafe { &mut *counts_of(now, self.task.context) });
            if let Some(trace) = self.trace.as_mut().filter(|_| !is_warming) {
                trace.push(block, way, dispatched, detail.pipeline.dispatched());
            }
        }
        if is_warming {
            return;
        }
        // SAFETY: as above.
        let node = unsafe { &mut *self.task.node };
        node.instructions = node.instructions.wrapping_add(now.facts.instructions.len() as u64);
    }

    /// An instruction of counted code has accessed memory. `place` is asked rarely.
    ///
    /// # Safety
    /// The block that runs came from [`Blocks::intern`].
    #[inline(always)]
    pub unsafe fn access(
        &mut self,
        access: Access,
        address: u64,
        size: u64,
        is_store: bool,
        place: impl Fn() -> Place,
    ) {
        let Some(detail) = &mut self.detail else {
            return;
        };
        let counts = if self.is_warming {
            &mut self.unread
        } else {
            // SAFETY: as promised.
            unsafe { &mut (*(*self.previous).counts).counts[self.task.context as usize] }
        };
        match access.rep {
            Some(RepBytes::Stores) => counts[Event::rep_bytes as usize] += if is_store { size } else { 0 },
            Some(RepBytes::Loads) => counts[Event::rep_bytes as usize] += if is_store { 0 } else { size },
            None if is_store => counts[Event::stores as usize] += 1,
            None => counts[Event::loads as usize] += 1,
        }
        let reach = detail.hardware.access(address, counts, place);
        if access.rep.is_none() && !self.is_warming {
            detail.pipeline.touch(access.place, address, is_store, reach);
        }
    }

    /// User code's pages come from the TLBs, once the kernel's last block before it has done what it does to them.
    #[inline(always)]
    fn user_fetch(&mut self, block: &UserBlock) {
        let Some(detail) = &mut self.detail else {
            return;
        };
        // SAFETY: blocks are never freed.
        if let Some(flush) = unsafe { (*self.previous).facts.flush } {
            detail.hardware.flush(flush);
        }
        let counts = if self.is_warming { &mut self.unread } else { &mut self.counted.user.0 };
        for address in [block.start, block.last] {
            detail.hardware.user_fetch(address, counts);
        }
    }

    /// An instruction of user code has accessed memory, while a kernel is counted. `place` is asked rarely.
    #[inline(always)]
    pub fn user_access(&mut self, address: u64, is_store: bool, place: impl Fn() -> Place) {
        let Some(detail) = &mut self.detail else {
            return;
        };
        let counts = if self.is_warming { &mut self.unread } else { &mut self.counted.user.0 };
        counts[if is_store { Event::stores } else { Event::loads } as usize] += 1;
        detail.hardware.access(address, counts, place);
    }

    /// The running task's stack pointer is put away at an address, or another's is taken from one.
    pub fn switch(&mut self, address: u64, is_store: bool) {
        if self.is_warming {
            return;
        }
        if is_store {
            self.switched_from = address;
        } else {
            self.tasks.exchange(&mut self.task, self.switched_from, address, self.root, &mut self.blocks.room);
            self.heed_limits();
        }
    }

    pub fn announce(&mut self, bit: u32) {
        self.word = self.word << 1 | bit;
    }

    /// The measured part begins.
    pub fn open(&mut self) {
        let identity = Identity::from_word(self.word);
        if identity.is_unseen() || self.active || self.has_given_up() {
            return;
        }
        if identity.is_warm_up() {
            self.is_warming = self.is_detailed();
            self.active = self.is_warming;
            return self.start();
        }
        if self.identity != Some(identity) {
            self.end_iteration();
            if self.identity.is_none_or(|before| before.benchmark != identity.benchmark) {
                self.end_benchmark();
            }
            let root = self.regions.begin(identity, &mut self.blocks.room);
            let Some(root) = root.filter(|_| !self.has_given_up()) else {
                return;
            };
            if let Some(trace) = &mut self.trace {
                trace.clear();
            }
            self.identity = Some(identity);
            self.root = root;
        }
        self.opened += 1;
        self.active = true;
        self.start();
    }

    /// Nothing that ran before the measured part belongs to it.
    fn start(&mut self) {
        self.previous = self.outside;
        self.previous_user = std::ptr::null();
        self.tasks.forget();
        self.task = Task::new(self.root);
        if let Some(trace) = &mut self.trace {
            trace.interrupt();
        }
        if let Some(detail) = &mut self.detail {
            detail.pipeline.reset();
            detail.frontend.reset();
        }
    }

    /// The measured part ends.
    pub fn close(&mut self) {
        (self.active, self.is_warming) = (false, false);
    }

    fn end_iteration(&mut self) {
        if let Some(identity) = self.identity {
            self.regions.end_iteration(identity, &mut self.counted, &mut self.blocks);
        }
    }

    fn end_benchmark(&mut self) {
        if let Some(identity) = self.identity {
            self.regions.end_benchmark(identity, &mut self.counted, &mut self.blocks);
            if let Some(trace) = &mut self.trace {
                self.regions.keep_trace(identity, trace);
            }
        }
    }

    /// What was counted in all.
    pub fn finish(&mut self) -> Finished<'_> {
        self.end_iteration();
        self.end_benchmark();
        let unmeasured = self.blocks.unmeasured().unwrap_or_default();
        Finished {
            unmeasured,
            gave_up: self.blocks.room.excess(),
            opened: self.opened,
            unclosed: self.identity.filter(|_| self.active && !self.is_warming),
            regions: &self.regions,
            symbols: self.blocks.symbols(),
        }
    }
}

pub struct Finished<'a> {
    /// Why nothing here is to be used.
    pub gave_up: Option<Excess>,
    pub opened: u64,
    /// A region that was open when QEMU ended.
    pub unclosed: Option<Identity>,
    pub regions: &'a Regions,
    /// What was executed outside of them.
    pub unmeasured: BTreeMap<Range, u64>,
    pub symbols: &'a crate::symbols::Symbols,
}

impl Detail {
    /// Whether it was known that one block follows another.
    #[inline(always)]
    fn follow(&mut self, before: &Block, now: &Block, counts: &mut Counts) -> Way {
        // What an exception or an interrupt broke off was no branch to its entry.
        if now.arrival.is_some() || before.is_outside() || before.facts.exit == Exit::TrapReturn {
            self.frontend.restart(self.pipeline.dispatched());
            return Way::Entered;
        }
        let is_taken = now.facts.start != before.facts.end;
        if is_taken {
            self.frontend.taken(&before.facts.fetched(), counts);
        }
        match (self.predict(before, now, counts), is_taken) {
            (true, _) => Way::Unexpected,
            (false, true) => Way::Taken,
            (false, false) => Way::Through,
        }
    }

    #[inline(always)]
    fn fetch(&mut self, block: &Block, counts: &mut Counts) {
        let dispatched = self.pipeline.dispatched();
        let time = self.frontend.fetch(&block.facts.fetched(), dispatched, &mut self.hardware, counts);
        self.pipeline.fetched(time);
    }

    /// Whether a branch went where it wasn't expected to go.
    #[inline(always)]
    fn predict(&mut self, before: &Block, now: &Block, counts: &mut Counts) -> bool {
        let (branch, target) = (before.facts.last, now.facts.start);
        let (missed, event) = match before.facts.exit {
            Exit::Conditional { target: taken } if target == taken || target == before.facts.end => {
                (self.predictor.conditional(branch, target == taken), Event::mispredicted_conditional)
            }
            Exit::Return => (self.predictor.returned(target), Event::mispredicted_returns),
            Exit::Call { target: there } => {
                if there == target {
                    self.predictor.call(before.facts.end);
                }
                return false;
            }
            Exit::IndirectCall => {
                self.predictor.call(before.facts.end);
                (self.predictor.indirect(branch, target), Event::mispredicted_indirect)
            }
            Exit::IndirectJump => (self.predictor.indirect(branch, target), Event::mispredicted_indirect),
            _ => return false,
        };
        if missed {
            counts[event as usize] += 1;
            self.pipeline.mispredicted();
            self.frontend.restart(self.pipeline.dispatched());
        }
        missed
    }
}

#[cfg(test)]
mod tests;
