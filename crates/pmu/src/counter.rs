//! The hot path: what happens at each block and at each access to memory inside a measured region.

mod regions;
mod user;

use crate::block::{Action, Arrival, Block, Blocks, Link, UserBlock, link};
use crate::counted::{Aborted, Counted};
use crate::decode::{Access, Exit, RepBytes};
use crate::detail::Detail;
use crate::events::{Context, Counts, EVENTS, Event};
use crate::geometry::Geometry;
use crate::hardware::Place;
use crate::limits::Thing;
use crate::pipeline::Kind;
use crate::region::{Identity, Regions};
use crate::stacks::{Node, Task, Tasks};
use crate::trace::Trace;

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
    regions_opened: u64,
}

impl Counter {
    /// Return a counter; a trace is kept, and user code's accesses are looked at, only where there is a geometry.
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
            detail: geometry.map(Detail::new),
            trace: is_traced.then(Trace::default),
            sees_user_accesses,
            unread: [0; EVENTS],
            counted: Counted::default(),
            blocks,
            switched_from: 0,
            word: 0,
            identity: None,
            regions: Regions::default(),
            regions_opened: 0,
        }
    }

    pub fn is_detailed(&self) -> bool {
        self.detail.is_some()
    }

    /// Return whether there was too much of something: counts from here on would be wrong, so there are none. For good.
    pub fn has_given_up(&self) -> bool {
        self.blocks.room.is_exceeded()
    }

    /// Give up beyond the limits; to be called after whatever takes room.
    #[inline(always)]
    fn heed_limits(&mut self) {
        if self.has_given_up() {
            self.active = false;
        }
    }

    /// Intern a block that was translated just now, by [`Blocks::intern`].
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

    /// Intern a block of user code, while a kernel is counted.
    pub fn intern_user(&mut self, addresses: &[u64], bytes: &[u8]) -> Option<*mut UserBlock> {
        let block = self.blocks.intern_user(addresses, bytes);
        self.heed_limits();
        block
    }

    /// Begin a block of counted code.
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

    /// Begin a block of counted code outside of all regions: in the boot, between benchmarks, in a warm-up.
    ///
    /// # Safety
    /// `block` came from [`Blocks::intern`].
    #[inline(always)]
    pub unsafe fn unmeasured(&mut self, block: *mut Block) {
        // SAFETY: as promised; blocks are never freed, and one virtual CPU calls this.
        unsafe { (*block).unmeasured += 1 };
    }

    /// Begin a block of the loop in which an idle kernel waits for an interrupt. It is no work: nothing is counted, and
    /// what follows comes from outside, as after user code.
    #[inline(always)]
    pub fn wait(&mut self) {
        if self.previous != self.outside {
            self.previous = self.outside;
            self.task.leave(self.root);
        }
    }

    /// # Safety
    /// Both are blocks.
    #[inline(always)]
    unsafe fn step(&mut self, previous: *mut Block, block: *mut Block) {
        // SAFETY: as promised.
        unsafe {
            let slots = &(*previous).slots;
            let link = if std::ptr::eq(slots[0].target, block) {
                slots[0].link
            } else if std::ptr::eq(slots[1].target, block) {
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

    /// Make place for what is counted of a block's function; false if there is no room for it.
    fn has_counts(&mut self, block: &mut Block) -> bool {
        if block.counts.is_null() {
            let Some(counts) = self.blocks.function_counts(block.function) else {
                return false;
            };
            block.counts = counts;
        }
        true
    }

    /// Act on a link, whose count is already made, in the context before.
    unsafe fn act(&mut self, link: *mut Link) {
        // SAFETY: a link and its blocks are never freed.
        let (link, source, target) = unsafe { (&mut *link, &mut *(*link).source, &mut *(*link).target) };
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
            Action::Call if self.detail.is_some() => self.task.call(source, target, room),
            Action::Return if target.is_fork => self.task.restart(self.root, target.function, room),
            Action::Return if self.detail.is_some() => self.task.return_from(source, target, self.root, room),
            Action::Transfer if self.detail.is_some() => self.task.transfer(target.function, room),
            Action::Call | Action::Return | Action::Transfer => {}
            Action::Enter(arrival) => {
                // The entry's own work belongs to what is entered.
                link.counts[self.task.context as usize] -= 1;
                self.enter(source, target, arrival);
                link.counts[self.task.context as usize] += 1;
            }
            Action::TrapReturn => {
                link.counts[self.task.context as usize] -= 1;
                // SAFETY: `target` is a block.
                unsafe { self.trap_return(target) };
            }
        }
        self.heed_limits();
    }

    fn enter(&mut self, source: &mut Block, target: &Block, arrival: Arrival) {
        if !source.is_outside() {
            return self.task.trap(source, target.function, arrival == Arrival::Exception, &mut self.blocks.room);
        }
        let context = match arrival {
            Arrival::Syscall => Context::Task,
            Arrival::Exception => Context::Exception,
            Arrival::Interrupt => Context::Interrupt,
        };
        self.task.faulted = if arrival == Arrival::Exception { self.previous_user } else { std::ptr::null() };
        self.task.enter(target.function, context, &mut self.blocks.room);
    }

    /// Return from a trap behind iret to kernel code: what was broken off goes on.
    unsafe fn trap_return(&mut self, target: &mut Block) {
        let next = target.facts.start;
        if let Some(trap) = self.task.resume() {
            // SAFETY: blocks are never freed.
            let interrupted = unsafe { &*trap.interrupted };
            let is_again = trap.is_exception && interrupted.holds(next);
            if !is_again && !interrupted.is_outside() {
                // SAFETY: both are blocks.
                return unsafe { self.step(trap.interrupted, target) };
            }
            if is_again {
                let (block, context) = (trap.interrupted.cast_const(), trap.context);
                let aborted = &mut self.counted.aborted;
                aborted.entry(Aborted { block, context, resumed_at: next }).or_default().count += 1;
                // What was one too many is there, and nobody will look at it.
                let _ = self.blocks.room.holds(Thing::broken_off, aborted.len());
            }
        }
        // SAFETY: both are blocks.
        unsafe { self.step(self.outside, target) };
    }

    /// Model a block in detail; `context` is that in which `previous` ran.
    #[inline(always)]
    unsafe fn in_detail(&mut self, previous: *mut Block, context: Context, block: *mut Block) {
        let detail = self.detail.as_mut().expect("asked before");
        // SAFETY: blocks, nodes and functions are never freed.
        let (earlier, current) = unsafe { (&*previous, &*block) };
        let (is_warming, unread) = (self.is_warming, &raw mut self.unread);
        let counts_of = |block: &Block, context: Context| -> *mut Counts {
            if is_warming {
                return unread;
            }
            // SAFETY: functions are never freed.
            unsafe { &raw mut (*block.counts).counts[context as usize] }
        };
        // SAFETY: as above; the two are used one after the other.
        let counts = unsafe { &mut *counts_of(earlier, context) };
        if !is_warming {
            detail.pipeline.block(&earlier.facts.ops, counts);
        }
        if let Some(flush) = earlier.facts.flush {
            detail.hardware.flush(flush);
        }
        // A REP string instruction that goes on is there already.
        let goes_on = earlier.facts.exit == Exit::Rep && current.facts.start == earlier.facts.last;
        if !goes_on {
            if let Some(Kind::Rep(strings)) = earlier.facts.ops.last().map(|op| op.kind).filter(|_| !is_warming) {
                detail.pipeline.end_rep(strings);
            }
            let way = detail.follow(earlier, current, counts);
            let dispatched = detail.pipeline.dispatch_time();
            // SAFETY: as above.
            detail.fetch(current, unsafe { &mut *counts_of(current, self.task.context) });
            if let Some(trace) = self.trace.as_mut().filter(|_| !is_warming) {
                trace.push(block, way, dispatched, detail.pipeline.dispatch_time());
            }
        }
        if is_warming {
            return;
        }
        // SAFETY: as above.
        let node = unsafe { &mut *self.task.node };
        node.instructions = node.instructions.wrapping_add(current.facts.instructions.len() as u64);
    }

    /// Model an access to memory by an instruction of counted code. `place` is asked rarely.
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
            Some(rep) if is_store == (rep == RepBytes::Stores) => {
                counts[Event::rep_bytes as usize] += size;
                detail.pipeline.rep_bytes(size);
            }
            Some(_) => {}
            None if is_store => counts[Event::stores as usize] += 1,
            None => counts[Event::loads as usize] += 1,
        }
        let reach = detail.hardware.access(address, counts, place);
        if access.rep.is_none() && !self.is_warming {
            detail.pipeline.touch(access.place, address, size, is_store, reach);
        }
    }

    /// Switch tasks: the running task's stack pointer is put away at an address, or another's is taken from one.
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
}

#[cfg(test)]
mod tests;
