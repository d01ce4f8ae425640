//! What a measured region came to: the counts of links and functions, moved here when the region's identity changes.

use crate::block::{Action, Block, Blocks, Link};
use crate::counted::{Counted, UserCounts};
use crate::decode::{Exit, Range};
use crate::events::{CONTEXTS, Context, Counts, EVENTS, Event, OF_USER_CODE};
use crate::limits::{Excess, Room, Thing};
use crate::stacks::Node;
use crate::symbols::Symbols;
use crate::trace::Trace;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The benchmark, and which of its iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    pub benchmark: u16,
    pub iteration: u16,
}

impl Identity {
    /// Return the identity that the marker instructions announce (crates/marker).
    pub fn from_word(word: u32) -> Identity {
        let (benchmark, iteration) = kdyno_marker::from_word(word);
        Identity { benchmark, iteration }
    }

    /// Return whether it is a warm-up: it goes through caches, TLBs and predictor, and isn't counted.
    pub fn is_warm_up(self) -> bool {
        self.iteration == kdyno_marker::WARM_UP
    }

    /// Return whether nothing of it is looked at.
    pub fn is_unseen(self) -> bool {
        self.iteration == kdyno_marker::UNSEEN
    }
}

/// One benchmark.
pub struct Region {
    pub iterations: BTreeMap<u16, [Counts; CONTEXTS]>,
    pub contexts: [Executed; CONTEXTS],
    /// The root of the tree of stacks.
    pub root: *mut Node,
    /// The trace of the last iteration.
    pub trace: Option<Trace>,
}

/// What was executed in one context, over all iterations.
#[derive(Default)]
pub struct Executed {
    pub blocks: BTreeMap<Range, u64>,
    pub branches: BTreeMap<Branch, u64>,
    pub functions: BTreeMap<u32, Counts>,
}

/// A branch that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Branch {
    pub source: u64,
    pub target: u64,
    pub kind: BranchKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum BranchKind {
    Conditional,
    Jump,
    Call,
    Return,
    IndirectJump,
    IndirectCall,
}

impl Region {
    fn new() -> Region {
        Region { iterations: BTreeMap::new(), contexts: Default::default(), root: Node::root(), trace: None }
    }
}

/// All regions, by benchmark.
#[derive(Default)]
pub struct Regions {
    pub by_benchmark: BTreeMap<u16, Region>,
}

/// What was counted in all.
pub struct Finished<'a> {
    /// Why nothing here is to be used.
    pub gave_up: Option<Excess>,
    pub regions_opened: u64,
    /// A region that was open when QEMU ended.
    pub unclosed: Option<Identity>,
    pub regions: &'a Regions,
    /// What was executed outside of them.
    pub unmeasured: BTreeMap<Range, u64>,
    pub symbols: &'a Symbols,
}

impl Regions {
    /// Return the root of the tree of stacks for an iteration that begins; None if there is no room for it.
    pub fn begin(&mut self, identity: Identity, room: &mut Room) -> Option<*mut Node> {
        let regions = &mut self.by_benchmark;
        let region = entry(regions, identity.benchmark, Region::new, Thing::regions, room)?;
        let empty = || [[0; EVENTS]; CONTEXTS];
        entry(&mut region.iterations, identity.iteration, empty, Thing::iterations, room)?;
        Some(region.root)
    }

    /// Add what an iteration, which has begun, counted to its totals.
    pub fn end_iteration(&mut self, identity: Identity, counted: &mut Counted, blocks: &mut Blocks) {
        let region = self.by_benchmark.get_mut(&identity.benchmark);
        let Some(totals) = region.and_then(|region| region.iterations.get_mut(&identity.iteration)) else {
            return;
        };
        for link in &counted.links {
            // SAFETY: links are never freed, and nobody else looks at them now.
            let link = unsafe { &mut **link };
            for (context, total) in totals.iter_mut().enumerate() {
                let count = link.counts[context] - link.start_counts[context];
                if count > 0 {
                    events_of_link(link, count, blocks, &mut |_, event, count| add(total, event, count));
                }
            }
            link.start_counts = link.counts;
        }
        for (aborted, times) in &mut counted.aborted {
            let (total, count) = (&mut totals[aborted.context as usize], times.count - times.start_count);
            let mut sink = |_: &Block, event, count| add(total, event, count);
            events_of_part(aborted.block, aborted.resumed_at, count, blocks, &mut sink);
            times.start_count = times.count;
        }
        for function in &counted.functions {
            // SAFETY: functions are never freed.
            let function = unsafe { &mut **function };
            for (context, total) in totals.iter_mut().enumerate() {
                accumulate(total, &function.counts[context]);
                accumulate(&mut function.earlier_counts[context], &function.counts[context]);
                function.counts[context] = [0; EVENTS];
            }
        }
        let task = &mut totals[Context::Task as usize];
        add(task, Event::user_instructions, std::mem::take(&mut counted.user_instructions));
        add(task, Event::user_rep_iterations, std::mem::take(&mut counted.user_rep_iterations));
        let UserCounts(user) = std::mem::take(&mut counted.user);
        for (event, of_user) in OF_USER_CODE {
            add(task, of_user, user[event as usize]);
        }
    }

    /// Keep the trace of a benchmark's last iteration, in place of an earlier one.
    pub fn keep_trace(&mut self, identity: Identity, trace: &mut Trace) {
        let other_regions = self.by_benchmark.iter().filter(|(benchmark, _)| **benchmark != identity.benchmark);
        let steps_elsewhere =
            other_regions.filter_map(|(_, region)| region.trace.as_ref()).map(|trace| trace.steps.len()).sum();
        if let Some(region) = self.by_benchmark.get_mut(&identity.benchmark) {
            region.trace = Some(trace.take(steps_elsewhere));
        }
    }

    /// Add what all iterations executed to the benchmark, and set the counters back.
    pub fn end_benchmark(&mut self, identity: Identity, counted: &mut Counted, blocks: &mut Blocks) {
        let Some(region) = self.by_benchmark.get_mut(&identity.benchmark) else {
            return;
        };
        let mut sums: [Sums; CONTEXTS] = Default::default();
        for link in counted.links.drain(..) {
            // SAFETY: links are never freed.
            let link = unsafe { &mut *link };
            for (sum, count) in sums.iter_mut().zip(std::mem::take(&mut link.counts)) {
                if count > 0 {
                    sum.add_link(link, count, blocks);
                }
            }
            (link.touched, link.start_counts) = (false, [0; CONTEXTS]);
            // SAFETY: blocks are never freed.
            unsafe { (*link.source).forget_slots() };
        }
        for (aborted, times) in counted.aborted.drain() {
            let sum = &mut sums[aborted.context as usize];
            sum.add_part(aborted.block, aborted.resumed_at, times.count, blocks);
            let functions = &mut sum.functions;
            let mut sink = |block: &Block, event, count| add(functions.counts_of(block.function), event, count);
            events_of_part(aborted.block, aborted.resumed_at, times.count, blocks, &mut sink);
        }
        for function in counted.functions.drain(..) {
            // SAFETY: functions are never freed.
            let function = unsafe { &mut *function };
            for (sum, counts) in sums.iter_mut().zip(&mut function.earlier_counts) {
                let counts = std::mem::replace(counts, [0; EVENTS]);
                if counts.iter().any(|count| *count > 0) {
                    accumulate(sum.functions.counts_of(function.function), &counts);
                }
            }
            function.touched = false;
        }
        for (sum, executed) in sums.into_iter().zip(&mut region.contexts) {
            if sum.add_to(executed, &mut blocks.room).is_none() {
                return;
            }
        }
    }
}

/// Return what a map has for a key, made if need be; None if there is no room for another.
fn entry<'a, K: Ord, V>(
    map: &'a mut BTreeMap<K, V>,
    key: K,
    make: impl FnOnce() -> V,
    thing: Thing,
    room: &mut Room,
) -> Option<&'a mut V> {
    match map.entry(key) {
        Entry::Occupied(entry) => Some(entry.into_mut()),
        Entry::Vacant(place) => room.take(thing, 1).then(|| place.insert(make())),
    }
}

/// Takes an event of a block, and how often. Counts wrap: what was counted too often is taken back.
type Sink<'a> = &'a mut dyn FnMut(&Block, Event, u64);

/// Count all that follows from one block coming after another so many times.
fn events_of_link(link: &Link, count: u64, blocks: &mut Blocks, sink: Sink) {
    // SAFETY: blocks are never freed.
    let (source, target) = unsafe { (&*link.source, &*link.target) };
    if link.action == Action::RepIteration {
        return sink(target, Event::rep_iterations, count);
    }
    events_of_block(target, count, sink);
    match link.action {
        Action::Enter(_) if source.is_outside() => sink(target, Event::privilege_switches, count),
        Action::Enter(_) => {}
        Action::Restart => events_of_part(source, target.facts.start, count, blocks, sink),
        _ => events_of_exit(source, target.facts.start, count, sink),
    }
}

fn events_of_block(block: &Block, count: u64, sink: Sink) {
    if block.is_outside() {
        return;
    }
    sink(block, Event::instructions, count.wrapping_mul(block.facts.instructions.len() as u64));
    for (event, times) in &block.facts.events {
        sink(block, *event, count.wrapping_mul(u64::from(*times)));
    }
}

/// Count a block that was left before `next`, though it had been counted as a whole.
fn events_of_part(block: *const Block, next: u64, count: u64, blocks: &mut Blocks, sink: Sink) {
    // SAFETY: blocks are never freed.
    let block = unsafe { &*block };
    events_of_block(block, count.wrapping_neg(), sink);
    if let Some(part) = blocks.intern_part(block, next) {
        // SAFETY: as above.
        events_of_block(unsafe { &*part }, count, sink);
    }
}

fn events_of_exit(source: &Block, target: u64, count: u64, sink: Sink) {
    match source.facts.exit {
        Exit::Conditional { target: taken } if target == taken => sink(source, Event::taken_branches, count),
        Exit::Conditional { .. } => sink(source, Event::not_taken_branches, count),
        Exit::Jump { .. } => sink(source, Event::jumps, count),
        Exit::Call { .. } => sink(source, Event::calls, count),
        Exit::IndirectCall => {
            sink(source, Event::calls, count);
            sink(source, Event::indirect_branches, count);
        }
        Exit::IndirectJump => sink(source, Event::indirect_branches, count),
        Exit::Return => sink(source, Event::returns, count),
        Exit::Through | Exit::TrapReturn | Exit::Rep => {}
    }
}

/// Return the branch that was taken from one block to another; None if none was.
fn branch(source: &Block, target: u64) -> Option<Branch> {
    let kind = match source.facts.exit {
        Exit::Conditional { target: taken } if target == taken => BranchKind::Conditional,
        Exit::Jump { .. } => BranchKind::Jump,
        Exit::Call { .. } => BranchKind::Call,
        Exit::Return => BranchKind::Return,
        Exit::IndirectJump => BranchKind::IndirectJump,
        Exit::IndirectCall => BranchKind::IndirectCall,
        Exit::Conditional { .. } | Exit::Through | Exit::TrapReturn | Exit::Rep => return None,
    };
    Some(Branch { source: source.facts.last, target, kind })
}

/// Sums of one context.
#[derive(Default)]
struct Sums {
    blocks: FxHashMap<*const Block, u64>,
    branches: FxHashMap<Branch, u64>,
    functions: Functions,
}

#[derive(Default)]
struct Functions(FxHashMap<u32, Counts>);

impl Functions {
    fn counts_of(&mut self, function: u32) -> &mut Counts {
        self.0.entry(function).or_insert([0; EVENTS])
    }
}

impl Sums {
    fn add_link(&mut self, link: &Link, count: u64, blocks: &mut Blocks) {
        let functions = &mut self.functions;
        let mut sink = |block: &Block, event, count| add(functions.counts_of(block.function), event, count);
        events_of_link(link, count, blocks, &mut sink);
        if link.action == Action::RepIteration {
            return;
        }
        // SAFETY: blocks are never freed.
        let (source, target) = unsafe { (&*link.source, &*link.target) };
        self.add_block(target, count);
        match link.action {
            Action::Enter(_) => {}
            Action::Restart => self.add_part(source, target.facts.start, count, blocks),
            _ => {
                if let Some(branch) = branch(source, target.facts.start) {
                    *self.branches.entry(branch).or_default() += count;
                }
            }
        }
    }

    fn add_part(&mut self, block: *const Block, next: u64, count: u64, blocks: &mut Blocks) {
        self.add_block(block, count.wrapping_neg());
        // SAFETY: blocks are never freed.
        if let Some(part) = blocks.intern_part(unsafe { &*block }, next) {
            self.add_block(part, count);
        }
    }

    fn add_block(&mut self, block: *const Block, count: u64) {
        let sum = self.blocks.entry(block).or_default();
        *sum = sum.wrapping_add(count);
    }

    /// Add the counts to others; None if there is no room for all of it.
    fn add_to(self, executed: &mut Executed, room: &mut Room) -> Option<()> {
        for (block, count) in self.blocks {
            // SAFETY: blocks are never freed.
            let block = unsafe { &*block };
            if block.is_outside() {
                continue;
            }
            let sum = entry(&mut executed.blocks, Range::from_facts(&block.facts), || 0, Thing::executed_blocks, room)?;
            *sum = sum.wrapping_add(count);
        }
        for (branch, count) in self.branches {
            *entry(&mut executed.branches, branch, || 0, Thing::executed_branches, room)? += count;
        }
        for (function, counts) in self.functions.0 {
            let empty = || [0; EVENTS];
            accumulate(entry(&mut executed.functions, function, empty, Thing::executed_functions, room)?, &counts);
        }
        Some(())
    }
}

fn add(counts: &mut Counts, event: Event, count: u64) {
    let sum = &mut counts[event as usize];
    *sum = sum.wrapping_add(count);
}

fn accumulate(sums: &mut Counts, counts: &Counts) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum = sum.wrapping_add(*count);
    }
}
