//! What is known at one place of a function: the values in registers and on the stack.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Instruction, Register};

const REGISTERS: usize = 16;
pub const STACK_POINTER: usize = 4;
/// Bytes of a pointer.
const POINTER: i64 = 8;
/// Words of an object that is copied by moves of its words: several times what compilers copy so.
const MOST_WORDS: usize = 64;

/// Where a value was made: an instruction or a block, and the register; no register for one that was loaded.
pub type Source = (u64, usize);

/// Memory that isn't the stack, known by the values that its address is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Memory {
    pub base: Source,
    pub index: Source,
    pub scale: u32,
    pub displacement: u64,
    pub segment: Register,
    /// The symbol that a relocation adds, by its index.
    pub symbol: usize,
}

impl Memory {
    fn after(self, bytes: u64) -> Memory {
        Memory { displacement: self.displacement.wrapping_add(bytes), ..self }
    }
}

/// A place on the stack: which frame (realigned ones are another), and the offset from its start.
pub type Slot = (u64, i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Known by where it was made: an instruction or a block, and the register.
    Made(u64, usize),
    Stack(Slot),
    /// A number of bytes after another value.
    After(Source, i64),
    /// Loaded by an instruction.
    Loaded(Copy),
}

impl Value {
    /// Return what a value is a number of bytes after, and that number; None on the stack.
    pub fn source(self) -> Option<(Source, i64)> {
        match self {
            Value::Made(at, number) => Some(((at, number), 0)),
            Value::Loaded(copy) => Some(((copy.at, usize::MAX), 0)),
            Value::After(source, bytes) => Some((source, bytes)),
            Value::Stack(_) => None,
        }
    }

    /// Return the value some bytes after this one.
    pub fn after(self, bytes: i64) -> Value {
        match (self, self.source()) {
            (Value::Stack((frame, offset)), _) => Value::Stack((frame, offset.wrapping_add(bytes))),
            (_, Some((source, offset))) => Value::After(source, offset.wrapping_add(bytes)),
            _ => self,
        }
    }
}

/// A value of other memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Copy {
    /// The address of the instruction that loaded it.
    pub at: u64,
    pub memory: Memory,
    /// How many bytes were loaded.
    pub bytes: usize,
}

impl Copy {
    /// Return the memory that its bytes are from, byte after byte.
    pub fn each_byte(self) -> impl Iterator<Item = Memory> {
        (0..self.bytes as u64).map(move |bytes| self.memory.after(bytes))
    }
}

/// What was stored into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub bytes: i64,
    pub copy: Option<Copy>,
    /// What the value is a number of bytes after: a pointer that a register had to make room for is read from here.
    pub source: Option<(Source, i64)>,
    /// The address of the first atomic instruction that changed the copy.
    pub changed_at: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub registers: [Value; REGISTERS],
    pub slots: BTreeMap<Slot, Stored>,
}

impl State {
    /// Return the state at the start of a function, or of code that nothing is known to lead to.
    pub fn unknown(at: u64) -> State {
        let mut registers = [Value::Made(at, 0); REGISTERS];
        for (number, value) in registers.iter_mut().enumerate() {
            *value = Value::Made(at, number);
        }
        registers[STACK_POINTER] = Value::Stack((at, 0));
        State { registers, slots: BTreeMap::new() }
    }

    /// Return what is known where two ways meet, at the block at `at`.
    pub fn joined(&self, other: &State, at: u64) -> State {
        let mut joined = self.clone();
        for (number, value) in joined.registers.iter_mut().enumerate() {
            *value = match (*value, other.registers[number]) {
                (ours, theirs) if ours == theirs => ours,
                // The same pointer, of which only one way knows what it was loaded from.
                (ours, theirs) if ours.source() == theirs.source() && ours.source().is_some() => ours.after(0),
                _ => Value::Made(at, REGISTERS + number),
            };
        }
        for (slot, theirs) in &other.slots {
            let ours = joined.slots.entry(*slot).or_insert(*theirs);
            let copy = ours.copy.filter(|copy| ours.bytes == theirs.bytes && theirs.copy == Some(*copy));
            let changed_at = ours.changed_at.or(theirs.changed_at).filter(|_| copy.is_some());
            let source = ours.source.filter(|source| theirs.source == Some(*source));
            *ours = Stored { bytes: ours.bytes.max(theirs.bytes), copy, source, changed_at };
        }
        joined
    }

    pub fn set(&mut self, register: Register, value: Value, at: u64) {
        if register.is_gpr() {
            let number = register.full_register().number();
            let is_whole = register.is_gpr64() || !matches!(value, Value::Stack(_));
            // A value is identified by its register too: one instruction may make several.
            self.registers[number] = match value {
                Value::Made(..) => Value::Made(at, number),
                value if is_whole => value,
                _ => Value::Made(at, number),
            };
        }
    }

    pub fn move_stack(&mut self, by: i64) {
        if let Value::Stack((frame, offset)) = self.registers[STACK_POINTER] {
            self.registers[STACK_POINTER] = Value::Stack((frame, offset.wrapping_add(by)));
        }
    }

    /// Return the slot that the memory operand is, if it is one.
    pub fn slot_of(&self, instruction: &Instruction) -> Option<Slot> {
        let base = instruction.memory_base();
        if instruction.memory_index() != Register::None || !base.is_gpr64() || has_segment(instruction) {
            return None;
        }
        match self.registers[base.number()] {
            Value::Stack((frame, offset)) => {
                Some((frame, offset.wrapping_add(instruction.memory_displacement64() as i64)))
            }
            _ => None,
        }
    }

    pub fn stored_at(&self, slot: Slot) -> Option<&Stored> {
        let (start, stored) = self.slots.range(..=slot).next_back()?;
        (start.0 == slot.0 && slot.1.checked_sub(start.1)? < stored.bytes).then_some(stored)
    }

    /// Return the value that is read from a slot by an instruction at `at`.
    pub fn load(&self, slot: Slot, bytes: usize, at: u64) -> Value {
        let Some(stored) = self.stored_at(slot) else {
            return Value::Made(at, 0);
        };
        match (stored.copy, stored.source) {
            (Some(copy), _) => Value::Loaded(copy),
            (None, Some((source, after))) if bytes as i64 == POINTER => Value::After(source, after),
            _ => Value::Made(at, 0),
        }
    }

    /// Forget what a function that is called may change; `pointed_at` are the slots that it may know of.
    pub fn forget_at_call(&mut self, pointed_at: &BTreeSet<Slot>) {
        for (slot, stored) in &mut self.slots {
            // An operand is copied right before its instruction; what lives on over a call is a variable.
            stored.copy = None;
            stored.source = stored.source.filter(|_| !pointed_at.contains(slot));
        }
    }

    /// Return the copy at a slot, and where the object begins that was copied with it, word after word.
    pub fn object_at(&self, slot: Slot) -> Option<(Slot, Copy)> {
        let mut words = self.slots.range(..=slot).rev();
        let (&(frame, mut start), stored) = words.next()?;
        let copy = stored
            .copy
            .filter(|_| frame == slot.0 && slot.1.checked_sub(start).is_some_and(|within| within < stored.bytes))?;
        let mut memory = copy.memory;
        for (&(other, before), stored) in words.take(MOST_WORDS) {
            let is_next = other == frame && before.checked_add(stored.bytes) == Some(start);
            let from = stored.copy.filter(|copy| is_next && copy.memory.after(stored.bytes as u64) == memory);
            let Some(from) = from else { break };
            (start, memory) = (before, from.memory);
        }
        Some(((frame, start), copy))
    }

    pub fn store(&mut self, slot: Slot, bytes: i64, value: Value) {
        // A value that was made longer or shorter was converted: the slot is a variable of another type.
        let copy = match value {
            Value::Loaded(copy) if copy.bytes as i64 == bytes => Some(copy),
            _ => None,
        };
        let end = slot.1.saturating_add(bytes);
        // No store is longer than 64 bytes.
        let near = (slot.0, slot.1.saturating_sub(64))..(slot.0, end);
        let is_under = |start: &Slot, stored: &Stored| start.1.saturating_add(stored.bytes) > slot.1;
        let covered: Vec<Slot> =
            self.slots.range(near).filter(|(start, stored)| is_under(start, stored)).map(|(start, _)| *start).collect();
        for start in covered {
            if start == slot {
                self.slots.remove(&start);
            } else if let Some(stored) = self.slots.get_mut(&start) {
                (stored.copy, stored.source) = (None, None);
            }
        }
        let source = value.source().filter(|_| bytes == POINTER);
        self.slots.insert(slot, Stored { bytes, copy, source, changed_at: None });
    }

    /// Mark the copy that the slot is in as changed by an instruction at `at`.
    pub fn change(&mut self, slot: Slot, at: u64) {
        if let Some((start, stored)) = self.slots.range_mut(..=slot).next_back()
            && start.0 == slot.0
            && slot.1.checked_sub(start.1).is_some_and(|within| within < stored.bytes)
        {
            stored.changed_at = stored.changed_at.or(Some(at)).filter(|_| stored.copy.is_some());
            stored.source = None;
        }
    }

    /// Forget which values are copies of a memory that is written: they outlive what they were copied from.
    pub fn overwrite(&mut self, memory: &Memory, at: u64) {
        for (number, value) in self.registers.iter_mut().enumerate() {
            if matches!(value, Value::Loaded(copy) if copy.memory == *memory) {
                *value = Value::Made(at, number);
            }
        }
        for stored in self.slots.values_mut().filter(|stored| stored.copy.is_some_and(|copy| copy.memory == *memory)) {
            stored.copy = None;
        }
    }
}

fn has_segment(instruction: &Instruction) -> bool {
    matches!(instruction.segment_prefix(), Register::FS | Register::GS)
}
