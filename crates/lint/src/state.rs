//! What is known at one place of a function: the values in registers and on the stack.

use std::collections::BTreeMap;

use iced_x86::{Instruction, Register};

const REGISTERS: usize = 16;
pub const STACK_POINTER: usize = 4;

/// Memory that isn't the stack, known by the values that its address is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Memory {
    pub base: (u64, usize),
    pub index: (u64, usize),
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
    /// Loaded by an instruction.
    Loaded {
        at: u64,
        memory: Memory,
    },
}

/// What was stored into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub bytes: i64,
    /// Of other memory, loaded at an address.
    pub copy: Option<(u64, Memory)>,
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
            if ours != theirs {
                *ours = Stored { bytes: ours.bytes.max(theirs.bytes), copy: None };
            }
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
        let copy = match value {
            Value::Loaded { at, memory } => Some((at, memory)),
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
        self.slots.insert(slot, Stored { bytes, copy });
    }
}

fn has_segment(instruction: &Instruction) -> bool {
    matches!(instruction.segment_prefix(), Register::FS | Register::GS)
}
