//! Who called whom: a shadow of the call stack for each task, and the tree of all stacks that were seen.

use crate::block::{Block, UserBlock};
use crate::events::Context;
use crate::limits::{Room, Thing};
use std::collections::HashMap;
use std::ptr::{null, null_mut};

/// Why a frame is on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Call,
    Exception,
    Interrupt,
    /// From user code.
    Entry,
}

/// A function as called by its parent.
pub struct Node {
    pub parent: *mut Node,
    pub function: u32,
    pub kind: Kind,
    /// Spent in the function itself.
    pub instructions: u64,
    /// How many are above it.
    depth: usize,
    pub children: Vec<*mut Node>,
}

impl Node {
    pub fn root() -> *mut Node {
        Node::leaked(null_mut(), 0, Kind::Entry, 0)
    }

    fn leaked(parent: *mut Node, function: u32, kind: Kind, depth: usize) -> *mut Node {
        Box::leak(Box::new(Node { parent, function, kind, instructions: 0, depth, children: Vec::new() }))
    }
}

/// Return a child of a node; the node itself where there is no room for another.
///
/// # Safety
/// `node` is a node; nodes are never freed.
unsafe fn child(node: *mut Node, function: u32, kind: Kind, room: &mut Room) -> *mut Node {
    // SAFETY: as promised; one virtual CPU.
    let (children, depth) = unsafe { (&mut (*node).children, (*node).depth + 1) };
    // SAFETY: children are nodes.
    let is_child = |node: &*mut Node| unsafe { (**node).function == function && (**node).kind == kind };
    if let Some(place) = children.iter().position(is_child) {
        children.swap(place, place / 2);
        return children[place / 2];
    }
    if !room.holds(Thing::stack_depth, depth) || !room.take(Thing::stack_nodes, 1) {
        return node;
    }
    let new = Node::leaked(node, function, kind, depth);
    children.push(new);
    new
}

struct Frame {
    return_address: u64,
    caller: *mut Node,
}

/// A kernel path that an exception or an interrupt broke off.
pub struct Trap {
    pub interrupted: *mut Block,
    pub context: Context,
    pub is_exception: bool,
    frames: usize,
    node: *mut Node,
}

/// What is known of one task in the kernel.
pub struct Task {
    pub context: Context,
    /// The user code that an exception broke off.
    pub faulted: *const UserBlock,
    traps: Vec<Trap>,
    frames: Vec<Frame>,
    /// Where it is in the tree.
    pub node: *mut Node,
}

/// A return is looked for among as many frames.
const SEARCHED: usize = 16;
/// A stack that grows beyond this was misunderstood.
const DEEPEST: usize = 1000;

impl Task {
    pub fn new(root: *mut Node) -> Task {
        Task { context: Context::Task, faulted: null(), traps: Vec::new(), frames: Vec::new(), node: root }
    }

    /// Return how many frames and traps it holds room for.
    fn frames(&self) -> usize {
        self.frames.capacity() + self.traps.capacity()
    }

    /// Leave the kernel: user code runs, and nothing is left on the kernel's stack.
    pub fn leave(&mut self, root: *mut Node) {
        self.context = Context::Task;
        self.traps.clear();
        self.frames.clear();
        self.node = root;
    }

    /// Enter the kernel from user code, or from code that isn't known.
    pub fn enter(&mut self, function: u32, context: Context, room: &mut Room) {
        self.context = context;
        // SAFETY: `node` is the root after leave().
        self.node = unsafe { child(self.node, function, Kind::Entry, room) };
    }

    /// Push an exception or interrupt of the kernel itself.
    pub fn trap(&mut self, interrupted: *mut Block, function: u32, is_exception: bool, room: &mut Room) {
        if !room.holds(Thing::traps, self.traps.len() + 1) {
            return;
        }
        let (context, kind) = match (self.context, is_exception) {
            (Context::Interrupt, true) => (Context::Interrupt, Kind::Exception),
            (_, true) => (Context::Exception, Kind::Exception),
            (_, false) => (Context::Interrupt, Kind::Interrupt),
        };
        let frames = self.frames.len();
        self.traps.push(Trap { interrupted, context: self.context, is_exception, frames, node: self.node });
        self.context = context;
        // SAFETY: `node` is always a node.
        self.node = unsafe { child(self.node, function, kind, room) };
    }

    /// Resume what was broken off, if that is known.
    pub fn resume(&mut self) -> Option<Trap> {
        let trap = self.traps.pop()?;
        self.context = trap.context;
        self.frames.truncate(trap.frames);
        self.node = trap.node;
        Some(trap)
    }

    /// Restart with a new task.
    pub fn restart(&mut self, root: *mut Node, function: u32, room: &mut Room) {
        self.leave(root);
        // SAFETY: `root` is a node.
        self.node = unsafe { child(root, function, Kind::Call, room) };
    }

    /// Record that `source` called `target`.
    pub fn call(&mut self, source: &Block, target: &Block, room: &mut Room) {
        if self.frames.len() == DEEPEST {
            self.frames.clear();
        }
        self.frames.push(Frame { return_address: source.facts.end, caller: self.node });
        // A call within a function is a trick (retpolines), not a call.
        if source.function != target.function || target.facts.start < source.facts.start {
            // SAFETY: `node` is always a node.
            self.node = unsafe { child(self.node, target.function, Kind::Call, room) };
        }
    }

    /// Record that `source` returned to `target`: behind a call, or, where the return address was exchanged (retpolines),
    /// anywhere.
    pub fn return_from(&mut self, source: &Block, target: &Block, root: *mut Node, room: &mut Room) {
        let base = self.traps.last().map_or(0, |trap| trap.frames);
        let open_frames = &self.frames[base.min(self.frames.len())..];
        let is_behind = |frame: &Frame| frame.return_address == target.facts.start;
        if let Some(depth) = open_frames.iter().rev().take(SEARCHED).position(is_behind) {
            let place = self.frames.len() - 1 - depth;
            self.node = self.frames[place].caller;
            self.frames.truncate(place);
            return;
        }
        let is_retpoline = open_frames.last().is_some_and(|frame| {
            let (start, end) = (source.facts.start.saturating_sub(RETPOLINE), source.facts.end);
            (start..=end).contains(&frame.return_address)
        });
        if is_retpoline {
            self.frames.pop();
            self.transfer(target.function, room);
        } else {
            self.frames.truncate(base);
            // SAFETY: `root` is a node.
            self.node = unsafe { child(root, target.function, Kind::Call, room) };
        }
    }

    /// Move into another function without a call: it takes the place of this one.
    pub fn transfer(&mut self, function: u32, room: &mut Room) {
        // SAFETY: `node` is always a node, and so is its parent unless it is null.
        unsafe {
            let parent_node = (*self.node).parent;
            let (parent, kind) =
                if parent_node.is_null() { (self.node, Kind::Call) } else { (parent_node, (*self.node).kind) };
            self.node = child(parent, function, kind, room);
        }
    }
}

/// A retpoline's `call`, loop and `ret` are not longer than this.
const RETPOLINE: u64 = 64;

/// The tasks that are not running, by the address of where their stack pointer is kept.
#[derive(Default)]
pub struct Tasks {
    asleep: HashMap<u64, Task>,
    /// Frames and traps that these hold room for.
    frames: usize,
}

impl Tasks {
    /// Exchange stacks: one task's is put away and another's taken out.
    pub fn exchange(&mut self, running: &mut Task, old_stack: u64, new_stack: u64, root: *mut Node, room: &mut Room) {
        let next = self.asleep.remove(&new_stack).inspect(|next| self.frames -= next.frames());
        let last = std::mem::replace(running, next.unwrap_or_else(|| Task::new(root)));
        self.frames += last.frames();
        if room.holds(Thing::tasks, self.asleep.len() + 1) && room.holds(Thing::frames, self.frames) {
            let replaced = self.asleep.insert(old_stack, last);
            self.frames -= replaced.map_or(0, |replaced| replaced.frames());
        }
    }

    pub fn forget(&mut self) {
        self.asleep.clear();
        self.frames = 0;
    }
}
