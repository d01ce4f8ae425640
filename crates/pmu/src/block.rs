//! Translated blocks and the transfers of control between them, as counted.

use crate::decode::{Exit, Facts, Range, decode};
use crate::events::{CONTEXTS, Counts, EVENTS};
use crate::limits::{Room, Thing};
use crate::symbols::{Role, Symbols};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::ptr::{null, null_mut};

/// A block of kernel code (of any code, when a program is counted).
pub struct Block {
    /// The two transfers out of it that were found last.
    pub slots: [Slot; 2],
    pub facts: Facts,
    /// Number of its function.
    pub function: u32,
    /// Counts of that function; null until it is in a region where functions are counted.
    pub counts: *mut FunctionCounts,
    /// How the kernel is entered here.
    pub arrival: Option<Arrival>,
    pub is_fork: bool,
    /// How often QEMU began to execute it outside of all regions.
    pub unmeasured: u64,
    /// Stands for code that is not counted.
    is_outside: bool,
    pub bytes: Box<[u8]>,
    links: Vec<*mut Link>,
}

#[derive(Clone, Copy)]
pub struct Slot {
    pub target: *const Block,
    pub link: *mut Link,
}

const EMPTY: Slot = Slot { target: null(), link: null_mut() };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    Syscall,
    Exception,
    Interrupt,
}

/// One block after another.
pub struct Link {
    pub source: *mut Block,
    pub target: *mut Block,
    /// Since the benchmark began.
    pub counts: [u64; CONTEXTS],
    /// What they were when the iteration began.
    pub start_counts: [u64; CONTEXTS],
    pub action: Action,
    /// It is on the list of those with counts.
    pub touched: bool,
}

/// What has to be done when one block follows another, beyond counting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Nothing,
    /// A REP string instruction goes on.
    RepIteration,
    /// Out of its middle: QEMU left the first block at an access to a device.
    Restart,
    Call,
    Return,
    /// Into another function without a call.
    Transfer,
    Enter(Arrival),
    /// Behind iret.
    TrapReturn,
}

/// Dynamic counts of one function, by context.
pub struct FunctionCounts {
    pub function: u32,
    /// Since the iteration began.
    pub counts: [Counts; CONTEXTS],
    /// The counts of the benchmark's earlier iterations.
    pub earlier_counts: [Counts; CONTEXTS],
    pub touched: bool,
}

/// A block of user code while a kernel is counted.
pub struct UserBlock {
    pub start: u64,
    pub last: u64,
    pub instructions: Box<[u64]>,
    pub is_rep: bool,
}

impl Block {
    /// Return a stand-in for code that is not counted.
    pub fn outside(counts: *mut FunctionCounts) -> Block {
        Block { is_outside: true, counts, ..Block::new(0, &[]) }
    }

    fn new(start: u64, bytes: &[u8]) -> Block {
        Block {
            slots: [EMPTY; 2],
            facts: Facts::unknown(start),
            function: 0,
            counts: null_mut(),
            arrival: None,
            is_fork: false,
            unmeasured: 0,
            is_outside: false,
            bytes: bytes.into(),
            links: Vec::new(),
        }
    }

    pub fn is_outside(&self) -> bool {
        self.is_outside
    }

    /// Return whether an instruction of it begins at the address.
    pub fn holds(&self, address: u64) -> bool {
        self.facts.instructions.iter().any(|instruction| instruction.address == address)
    }

    /// Return whether the block alone shows that it leads to the address. Nothing in a kernel returns or jumps by a
    /// register to an entry, or into the middle of the block that it comes from.
    fn leads_to(&self, address: u64) -> bool {
        match self.facts.exit {
            Exit::Through | Exit::Rep => address == self.facts.end,
            Exit::Conditional { target } => address == target || address == self.facts.end,
            Exit::Jump { target } | Exit::Call { target } => address == target,
            Exit::IndirectJump | Exit::IndirectCall | Exit::Return | Exit::TrapReturn => false,
        }
    }

    /// Drop the fast way to a link, so that its next use is noticed.
    pub fn forget_slots(&mut self) {
        self.slots = [EMPTY; 2];
    }
}

/// Return the link between two blocks, made if need be, and put where it is found fast; None if there is no room for
/// it.
///
/// # Safety
/// Both point to blocks that live as long as the program.
pub unsafe fn link(source: *mut Block, target: *mut Block, room: &mut Room) -> Option<*mut Link> {
    // SAFETY: as promised; nobody else looks at the blocks meanwhile, because there is one virtual CPU.
    let (block, next) = unsafe { (&mut *source, &*target) };
    // SAFETY: links are never freed.
    let is_link = |link: &*mut Link| unsafe { std::ptr::eq((**link).target, target) };
    let index = match block.links.iter().position(is_link) {
        Some(place) => place,
        None if !room.take(Thing::links, 1) => return None,
        None => {
            let link = Link {
                source,
                target,
                counts: [0; CONTEXTS],
                start_counts: [0; CONTEXTS],
                action: action(block, next),
                touched: false,
            };
            block.links.push(Box::leak(Box::new(link)));
            block.links.len() - 1
        }
    };
    // Towards the front: where many are, the frequent ones are found early.
    let place = index / 2;
    block.links.swap(index, place);
    let link = block.links[place];
    block.slots = [Slot { target, link }, block.slots[0]];
    Some(link)
}

fn action(source: &Block, target: &Block) -> Action {
    let (facts, next) = (&source.facts, target.facts.start);
    if let Some(arrival) = target.arrival
        && !source.leads_to(next)
    {
        return Action::Enter(arrival);
    }
    if source.is_outside() {
        return Action::Nothing;
    }
    match facts.exit {
        Exit::TrapReturn => Action::TrapReturn,
        Exit::Rep if next == facts.last => Action::RepIteration,
        _ if next != facts.start && !source.leads_to(next) && source.holds(next) => Action::Restart,
        Exit::Call { .. } | Exit::IndirectCall => Action::Call,
        Exit::Return => Action::Return,
        _ if source.function != target.function => Action::Transfer,
        _ => Action::Nothing,
    }
}

/// All blocks that were ever translated; they are never freed.
pub struct Blocks {
    /// For them, and for all else that a guest can make the plugin keep.
    pub room: Room,
    symbols: Symbols,
    is_detailed: bool,
    /// Code that makes large pages was translated, which QEMU does when it is about to run.
    pub makes_large_pages: bool,
    block_by_key: FxHashMap<(u64, u64), *mut Block>,
    user_block_by_key: FxHashMap<(u64, u64), *mut UserBlock>,
    functions: Vec<*mut FunctionCounts>,
}

impl Blocks {
    /// Return an empty set of blocks; where memory is modelled, blocks must be known in more detail.
    pub fn new(symbols: Symbols, is_detailed: bool) -> Blocks {
        let functions = vec![null_mut(); symbols.len()];
        let (block_by_key, user_block_by_key) = (FxHashMap::default(), FxHashMap::default());
        Blocks {
            room: Room::new(),
            symbols,
            is_detailed,
            makes_large_pages: false,
            block_by_key,
            user_block_by_key,
            functions,
        }
    }

    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Return a function's counts; None if there is no room for another function.
    pub fn function_counts(&mut self, function: u32) -> Option<*mut FunctionCounts> {
        let counts = &mut self.functions[function as usize];
        if counts.is_null() {
            if !self.room.take(Thing::functions, 1) {
                return None;
            }
            *counts = Box::leak(Box::new(FunctionCounts {
                function,
                counts: [[0; EVENTS]; CONTEXTS],
                earlier_counts: [[0; EVENTS]; CONTEXTS],
                touched: false,
            }));
        }
        Some(*counts)
    }

    /// Return the block with these bytes at this address, or None if there is no room for another. Its facts are there
    /// after [`Blocks::prepare`].
    pub fn intern(&mut self, start: u64, bytes: &[u8]) -> Option<*mut Block> {
        let key = (start, hash(bytes));
        if let Some(block) = self.block_by_key.get(&key) {
            return Some(*block);
        }
        if !self.room.take(Thing::blocks, 1) || !self.room.take(Thing::code_bytes, bytes.len()) {
            return None;
        }
        let function = self.symbols.find(start);
        let symbol = self.symbols.get(function);
        // The stubs of interrupts are many in one symbol; everything else is entered at its start.
        let arrival = match symbol.role {
            Role::Interrupt => Some(Arrival::Interrupt).filter(|_| symbol.start == start || symbol.size > STUBS),
            Role::Exception => Some(Arrival::Exception).filter(|_| symbol.start == start),
            Role::Syscall => Some(Arrival::Syscall).filter(|_| symbol.start == start),
            Role::Plain | Role::Switch | Role::Fork | Role::Huge | Role::Idle => None,
        };
        self.makes_large_pages |= symbol.role == Role::Huge;
        let is_fork = symbol.role == Role::Fork && symbol.start == start;
        let block = Block { function, arrival, is_fork, ..Block::new(start, bytes) };
        let block = Box::leak(Box::new(block));
        self.block_by_key.insert(key, block);
        Some(block)
    }

    /// Decode a block, unless that was done. Not when it is translated: most code of a boot never runs in a region.
    pub fn prepare(&self, block: &mut Block) {
        if block.facts.instructions.is_empty()
            && let Some(facts) = decode(block.facts.start, &block.bytes, self.is_detailed)
        {
            block.facts = facts;
        }
    }

    /// Return what was executed outside of all regions. None if there is no room for all of it.
    pub fn unmeasured(&mut self) -> Option<BTreeMap<Range, u64>> {
        let mut executed = BTreeMap::new();
        // SAFETY: blocks are never freed, and nobody else looks at them now.
        let blocks = self.block_by_key.values().map(|block| unsafe { &mut **block });
        for block in blocks.filter(|block| block.unmeasured > 0) {
            self.prepare(block);
            if block.facts.instructions.is_empty() {
                continue;
            }
            *executed.entry(Range::from_facts(&block.facts)).or_default() += block.unmeasured;
        }
        self.room.take(Thing::executed_blocks, executed.len()).then_some(executed)
    }

    /// Return the part of a block before an address; None if nothing is before it, or there is no room for it.
    pub fn intern_part(&mut self, block: &Block, address: u64) -> Option<*mut Block> {
        let length = address.checked_sub(block.facts.start).filter(|length| *length > 0)? as usize;
        let part = self.intern(block.facts.start, block.bytes.get(..length)?)?;
        // SAFETY: blocks are never freed, and nobody else looks at this one now.
        self.prepare(unsafe { &mut *part });
        Some(part)
    }

    /// Return a block of user code; None if there is nothing in it, or no room for another.
    pub fn intern_user(&mut self, addresses: &[u64], bytes: &[u8]) -> Option<*mut UserBlock> {
        let (start, last) = (*addresses.first()?, *addresses.last()?);
        let key = (start, hash(bytes));
        if let Some(block) = self.user_block_by_key.get(&key) {
            return Some(*block);
        }
        let tail = bytes.get(last.wrapping_sub(start) as usize..)?;
        if !self.room.take(Thing::user_blocks, 1) || !self.room.take(Thing::user_instructions, addresses.len()) {
            return None;
        }
        let is_rep = decode(last, tail, false).is_some_and(|facts| facts.exit == Exit::Rep);
        let block = Box::leak(Box::new(UserBlock { start, last, instructions: addresses.into(), is_rep }));
        self.user_block_by_key.insert(key, block);
        Some(block)
    }
}

/// irq_entries_start holds a stub of 8 or 16 bytes for each vector; an entry that is one function is never that long.
const STUBS: u64 = 1024;

fn hash(bytes: &[u8]) -> u64 {
    FxBuildHasher.hash_one(bytes)
}
