//! What is known at one place of a function: the values in registers and on the stack.

use std::collections::BTreeMap;

use iced_x86::{Instruction, Register};

const REGISTERS: usize = 16;
pub const STACK_POINTER: usize = 4;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// The address of the instruction that loaded it.
    pub at: u64,
    pub memory: Memory,
    /// How many bytes were loaded.
    pub bytes: usize,
}

/// What was stored into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub bytes: i64,
    pub copy: Option<Copy>,
    /// Whether an atomic instruction changed the copy.
    pub is_changed: bool,
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
            if *value != other.registers[number] {
                *value = Value::Made(at, REGISTERS + number);
            }
        }
        for (slot, theirs) in &other.slots {
            let ours = joined.slots.entry(*slot).or_insert(*theirs);
            let copy = ours.copy.filter(|copy| ours.bytes == theirs.bytes && theirs.copy == Some(*copy));
            let is_changed = copy.is_some() && (ours.is_changed || theirs.is_changed);
            *ours = Stored { bytes: ours.bytes.max(theirs.bytes), copy, is_changed };
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
                stored.copy = None;
            }
        }
        self.slots.insert(slot, Stored { bytes, copy, is_changed: false });
    }

    /// Mark the copy that the slot is in as changed.
    pub fn change(&mut self, slot: Slot) {
        if let Some((start, stored)) = self.slots.range_mut(..=slot).next_back()
            && start.0 == slot.0
            && slot.1.checked_sub(start.1).is_some_and(|within| within < stored.bytes)
        {
            stored.is_changed = stored.copy.is_some();
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
