//! Values in registers and on the stack, followed through a function: which slot holds a copy of other memory.
//!
//! A forward analysis over basic blocks. Two values that meet and differ become one that is only known by where they
//! met. What can't be followed (indirect jumps, labels that only tables of the kernel name) starts with nothing known.

use std::collections::BTreeSet;

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use crate::binary::{Binary, Function, Relocation};
use crate::disassembly::instructions;
use crate::state::{Copy, Memory, STACK_POINTER, Slot, State, Value};

/// Work for each instruction of a function (instructions and slots gone through) after which it is given up: several
/// times what any function of a kernel takes.
const MOST_WORK: usize = 1000;
/// What is known at each block is kept, so this is a limit on memory, too.
const MOST_WORK_OF_FUNCTION: usize = 4_000_000;
/// The limit for a function: several times what the largest one of a kernel has.
const MOST_INSTRUCTIONS: usize = 100_000;
/// Work that all functions of a file may take together: several times what a whole kernel of a distribution takes, and
/// a few seconds.
pub const MOST_WORK_OF_FILE: usize = 200_000_000;
/// The registers that a caller saves in the System V calling convention.
const CALLER_SAVED: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

/// What an atomic instruction does to its memory. The kernel changes a bit by one instruction where it asks for the bit's
/// old value, and by another where it doesn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    SetBits,
    ClearBits,
    FlipBits,
    Other(Mnemonic),
}

/// An atomic instruction on a slot that holds a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AtomicOnCopy {
    /// The address of the atomic instruction.
    pub at: u64,
    /// The address of the instruction that loaded the original.
    pub loaded_at: u64,
    copy: Copy,
    /// Where the object on the stack begins that the copy is a word of: it was copied from one place to one place.
    object: Slot,
    slot: Slot,
    effect: Effect,
}

/// Return the atomic instructions of a function that change only a copy; None if that is too much work.
///
/// `left` is what all functions of a file may take, and is less by what this one took.
pub fn atomics_on_copies(binary: &Binary, function: &Function, left: &mut usize) -> Option<Vec<AtomicOnCopy>> {
    let code: Vec<Instruction> = instructions(binary, function).take(MOST_INSTRUCTIONS + 1).collect();
    if code.len() > MOST_INSTRUCTIONS {
        return None;
    }
    let mut walk = Walk {
        binary,
        section: function.section,
        code: &code,
        info: InstructionInfoFactory::new(),
        atomics: BTreeSet::new(),
        written_back: BTreeSet::new(),
        changed: BTreeSet::new(),
        changed_twice: BTreeSet::new(),
        read_again: BTreeSet::new(),
        restored: BTreeSet::new(),
        pointed_at: BTreeSet::new(),
    };
    if !walk.through(left) {
        return None;
    }
    let is_object = |atomic: &AtomicOnCopy| walk.pointed_at.range(atomic.object..=atomic.slot).next().is_some();
    // A changed value that goes anywhere but back to where it is from is that of a variable.
    let is_variable = |copy: &Copy| {
        let is_used = walk.read_again.contains(&copy.memory) && !walk.restored.contains(&copy.memory);
        is_used || walk.changed_twice.contains(&copy.at)
    };
    // Where the original is given the copy by an atomic exchange, or is changed as the copy is, all is as it should be.
    let is_changed = |atomic: &AtomicOnCopy| {
        let is_of_bits = !matches!(atomic.effect, Effect::Other(_)); // a bit is changed in its word or in its byte
        let mut places = atomic.copy.each_byte().take(if is_of_bits { atomic.copy.bytes } else { 1 });
        walk.written_back.contains(&atomic.copy.memory)
            || places.any(|memory| walk.changed.contains(&(memory, atomic.effect)))
    };
    let atomics =
        walk.atomics.iter().filter(|atomic| !is_object(atomic) && !is_variable(&atomic.copy) && !is_changed(atomic));
    let mut atomics: Vec<AtomicOnCopy> = atomics.copied().collect();
    atomics.dedup_by_key(|atomic| (atomic.at, atomic.loaded_at)); // on two ways, at addresses that are known by both
    Some(atomics)
}

pub fn is_atomic(instruction: &Instruction) -> bool {
    let on_memory = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    on_memory && (instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg)
}

struct Walk<'a, 'data> {
    binary: &'a Binary<'data>,
    section: usize,
    code: &'a [Instruction],
    info: InstructionInfoFactory,
    atomics: BTreeSet<AtomicOnCopy>,
    /// Other memory that gets its own value back by an atomic exchange: it may be the changed copy.
    written_back: BTreeSet<Memory>,
    /// Other memory that an atomic instruction changes, and how: a copy that is changed alike is a variable.
    changed: BTreeSet<(Memory, Effect)>,
    /// Loads whose copy a second atomic instruction changes: an operand is copied anew for each.
    changed_twice: BTreeSet<u64>,
    /// Other memory whose copy was read again after an atomic instruction had changed it.
    read_again: BTreeSet<Memory>,
    /// Other memory that gets a copy of itself back by a plain store.
    restored: BTreeSet<Memory>,
    /// Slots whose address is made: objects that live on the stack.
    pointed_at: BTreeSet<Slot>,
}

impl Walk<'_, '_> {
    /// Return whether it came to the end of its work.
    fn through(&mut self, left: &mut usize) -> bool {
        let targets: Vec<Option<u64>> = self.code.iter().map(|instruction| self.branch_target(instruction)).collect();
        let starts = block_starts(self.code, &targets);
        let block_of = |address: u64| {
            let place = self.code.binary_search_by_key(&address, Instruction::ip).ok()?;
            starts.binary_search(&place).ok()
        };
        let edges: Vec<Vec<usize>> = (0..starts.len())
            .map(|block| {
                let last = block_end(&starts, block, self.code.len()) - 1;
                let target = targets[last].and_then(block_of);
                let next = goes_on(&self.code[last]).then_some(block + 1).filter(|next| *next < starts.len());
                target.into_iter().chain(next).collect()
            })
            .collect();
        let mut states: Vec<Option<State>> = vec![None; starts.len()];
        let mut most = (self.code.len() * MOST_WORK).min(MOST_WORK_OF_FUNCTION);
        for root in 0..starts.len() {
            if states[root].is_some() {
                continue;
            }
            states[root] = Some(State::unknown(self.code[starts[root]].ip()));
            let mut waiting = BTreeSet::from([root]);
            while let Some(block) = waiting.pop_first() {
                let Some(mut state) = states[block].clone() else {
                    continue;
                };
                let instructions = &self.code[starts[block]..block_end(&starts, block, self.code.len())];
                for instruction in instructions {
                    self.step(&mut state, instruction);
                }
                let work = instructions.len() + state.slots.len() * (1 + edges[block].len());
                let (Some(of_function), Some(of_file)) = (most.checked_sub(work), left.checked_sub(work)) else {
                    return false;
                };
                (most, *left) = (of_function, of_file);
                for &next in &edges[block] {
                    let met = match &states[next] {
                        None => state.clone(),
                        Some(known) => known.joined(&state, self.code[starts[next]].ip()),
                    };
                    if states[next].as_ref() != Some(&met) {
                        states[next] = Some(met);
                        waiting.insert(next);
                    }
                }
            }
        }
        true
    }

    /// Return the target of a jump that stays in its section; one with a relocation leaves it.
    fn branch_target(&self, instruction: &Instruction) -> Option<u64> {
        let is_jump =
            matches!(instruction.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch);
        (is_jump && self.relocation(instruction).is_none()).then(|| instruction.near_branch_target())
    }

    fn relocation(&self, instruction: &Instruction) -> Option<&Relocation> {
        self.binary.relocation_in(self.section, instruction.ip(), instruction.len() as u64)
    }

    /// Apply an instruction to the state.
    fn step(&mut self, state: &mut State, instruction: &Instruction) {
        let at = instruction.ip();
        if is_atomic(instruction) {
            self.note_atomic(state, instruction);
            self.forget_written(state, instruction, true);
            return;
        }
        self.note_read(state, instruction);
        match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => self.step_move(state, instruction),
            Mnemonic::Lea => {
                let value = match state.slot_of(instruction) {
                    Some(slot) => {
                        self.pointed_at.insert(slot);
                        Value::Stack(slot)
                    }
                    None => self.address(state, instruction),
                };
                state.set(instruction.op0_register(), value, at);
            }
            Mnemonic::Push => {
                let value = self.operand(state, instruction, 0);
                state.move_stack(-8);
                if let Value::Stack(slot) = state.registers[STACK_POINTER] {
                    state.store(slot, 8, value);
                }
            }
            Mnemonic::Call => {
                for register in CALLER_SAVED {
                    state.set(register, Value::Made(at, register.number()), at);
                }
                state.forget_at_call(&self.pointed_at);
            }
            Mnemonic::Add | Mnemonic::Sub if is_pointer(instruction) && instruction.op1_kind() != OpKind::Register => {
                let number = instruction.op1_kind() != OpKind::Memory;
                let change = if number { instruction.immediate(1) as i64 } else { 0 };
                let is_sub = instruction.mnemonic() == Mnemonic::Sub;
                state.move_stack(if is_sub { change.wrapping_neg() } else { change });
            }
            Mnemonic::Add | Mnemonic::Sub if is_moved(instruction) && self.relocation(instruction).is_none() => {
                let change = instruction.immediate(1) as i64;
                let bytes = if instruction.mnemonic() == Mnemonic::Sub { change.wrapping_neg() } else { change };
                let register = &mut state.registers[instruction.op0_register().number()];
                *register = register.after(bytes);
                if let Value::Stack(slot) = *register {
                    self.pointed_at.insert(slot);
                }
            }
            // The frame is aligned: where it begins now isn't known, but it is one place.
            Mnemonic::And if is_pointer(instruction) => state.registers[STACK_POINTER] = Value::Stack((at, 0)),
            Mnemonic::Leave => {
                state.registers[STACK_POINTER] = state.registers[Register::RBP.number()];
                state.move_stack(8);
                state.set(Register::RBP, Value::Made(at, 0), at);
            }
            Mnemonic::Pop => {
                state.move_stack(8);
                if instruction.op0_kind() == OpKind::Register {
                    state.set(instruction.op0_register(), Value::Made(at, 0), at);
                }
            }
            _ => self.forget_written(state, instruction, false),
        }
    }

    fn step_move(&mut self, state: &mut State, instruction: &Instruction) {
        let value = self.operand(state, instruction, 1);
        match instruction.op0_kind() {
            OpKind::Register => {
                // `mov rdi, rsp` makes a slot's address as `lea` does; `mov rbp, rsp` only names the frame.
                if let (Value::Stack(slot), true) = (value, instruction.op0_register() != Register::RBP) {
                    self.pointed_at.insert(slot);
                }
                let (to, at) = (instruction.op0_register(), instruction.ip());
                match instruction.op1_kind() {
                    OpKind::Register if to.is_gpr64() && instruction.op1_register().is_gpr64() => {
                        state.registers[to.number()] = value;
                    }
                    _ => state.set(to, value, at),
                }
            }
            OpKind::Memory => {
                if let Some(slot) = state.slot_of(instruction) {
                    state.store(slot, instruction.memory_size().size() as i64, value);
                } else if let Some(memory) = self.memory(state, instruction) {
                    if matches!(value, Value::Loaded(copy) if copy.memory == memory) {
                        self.restored.insert(memory);
                    } else {
                        state.overwrite(&memory, instruction.ip());
                    }
                }
            }
            _ => {}
        }
    }

    /// Return the value that an operand has before its instruction.
    fn operand(&self, state: &State, instruction: &Instruction, operand: u32) -> Value {
        let at = instruction.ip();
        match instruction.op_kind(operand) {
            OpKind::Register if instruction.op_register(operand).is_gpr() => {
                match state.registers[instruction.op_register(operand).full_register().number()] {
                    // Half of an address is not an address.
                    Value::Stack(_) if !instruction.op_register(operand).is_gpr64() => Value::Made(at, 0),
                    value => value,
                }
            }
            OpKind::Memory => match state.slot_of(instruction) {
                Some(slot) => state.load(slot, instruction.memory_size().size(), at),
                None => self.memory(state, instruction).map_or(Value::Made(at, 0), |memory| {
                    Value::Loaded(Copy { at, memory, bytes: instruction.memory_size().size() })
                }),
            },
            _ => Value::Made(at, 0),
        }
    }

    /// Return the address that `lea` makes of a register and a number.
    fn address(&self, state: &State, instruction: &Instruction) -> Value {
        let base = instruction.memory_base();
        let is_plain = base.is_gpr64()
            && instruction.memory_index() == Register::None
            && instruction.op0_register().is_gpr64()
            && self.relocation(instruction).is_none();
        if !is_plain {
            return Value::Made(instruction.ip(), 0);
        }
        state.registers[base.number()].after(instruction.memory_displacement64() as i64)
    }

    /// Return the memory that an instruction names; None on the stack.
    fn memory(&self, state: &State, instruction: &Instruction) -> Option<Memory> {
        let part = |register: Register| match register {
            Register::None | Register::RIP | Register::EIP => Some(((0, usize::MAX), 0)),
            register if register.is_gpr() => state.registers[register.full_register().number()].source(),
            _ => None,
        };
        let (base, after_base) = part(instruction.memory_base())?;
        let (index, after_index) = part(instruction.memory_index())?;
        let scale = instruction.memory_index_scale();
        let relocation = self.relocation(instruction);
        let symbol = relocation.and_then(|relocation| relocation.symbol).map_or(usize::MAX, |symbol| symbol.0);
        // The displacement of what is relative to rip depends on where the instruction is; the addend takes that out.
        let displacement = match relocation {
            Some(relocation) if instruction.is_ip_rel_memory_operand() => {
                let rest = instruction.next_ip() - self.binary.sections[self.section].base - relocation.offset;
                relocation.addend.wrapping_add_unsigned(rest) as u64
            }
            _ => instruction.memory_displacement64(),
        };
        Some(Memory {
            base,
            index,
            scale,
            displacement: displacement
                .wrapping_add_signed(after_base)
                .wrapping_add_signed(after_index.wrapping_mul(i64::from(scale))),
            segment: instruction.segment_prefix(),
            symbol,
        })
    }

    fn note_read(&mut self, state: &State, instruction: &Instruction) {
        let changed = state
            .slot_of(instruction)
            .and_then(|slot| state.stored_at(slot))
            .filter(|stored| stored.changed_at.is_some());
        if let Some(copy) = changed.and_then(|stored| stored.copy)
            && self.info.info(instruction).used_memory().iter().any(|used| is_read(used.access()))
        {
            self.read_again.insert(copy.memory);
        }
    }

    fn note_atomic(&mut self, state: &mut State, instruction: &Instruction) {
        if is_barrier(instruction) {
            return;
        }
        if let Some(slot) = state.slot_of(instruction) {
            if let Some((object, copy)) = state.object_at(slot) {
                let (at, loaded_at, effect) = (instruction.ip(), copy.at, effect(instruction.mnemonic()));
                self.atomics.insert(AtomicOnCopy { at, loaded_at, copy, object, slot, effect });
                // A loop around an exchange reads what it compares with, right or wrong.
                if !is_exchange(instruction) {
                    let before = state.stored_at(slot).and_then(|stored| stored.changed_at);
                    if before.is_some_and(|before| before != at) {
                        self.changed_twice.insert(loaded_at);
                    }
                    state.change(slot, at);
                }
            }
        } else if let Some(memory) = self.memory(state, instruction) {
            if !is_exchange(instruction) {
                self.changed.insert((memory, effect(instruction.mnemonic())));
            } else if matches!(self.operand(state, instruction, 1), Value::Loaded(copy) if copy.memory == memory) {
                self.written_back.insert(memory);
            }
        }
    }

    /// Forget what any other instruction writes; an atomic one leaves its slot what it was for the next one.
    fn forget_written(&mut self, state: &mut State, instruction: &Instruction, is_atomic: bool) {
        let at = instruction.ip();
        let slot = state.slot_of(instruction);
        let memory = self.memory(state, instruction);
        let info = self.info.info(instruction);
        let is_written = |access: OpAccess| {
            matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
        };
        if let Some(slot) = slot
            && !is_atomic
            && info.used_memory().iter().any(|used| is_written(used.access()))
        {
            state.store(slot, instruction.memory_size().size().max(1) as i64, Value::Made(at, 0));
        }
        if slot.is_none()
            && info.used_memory().iter().any(|used| is_written(used.access()))
            && let Some(memory) = memory
        {
            state.overwrite(&memory, at);
        }
        for used in info.used_registers().iter().filter(|used| is_written(used.access())) {
            let register = used.register();
            if register.is_gpr() {
                state.set(register, Value::Made(at, register.full_register().number()), at);
            }
        }
    }
}

fn is_read(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn effect(mnemonic: Mnemonic) -> Effect {
    match mnemonic {
        Mnemonic::Bts | Mnemonic::Or => Effect::SetBits,
        Mnemonic::Btr | Mnemonic::And => Effect::ClearBits,
        Mnemonic::Btc | Mnemonic::Xor => Effect::FlipBits,
        other => Effect::Other(other),
    }
}

fn is_pointer(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Register::RSP
}

/// Return whether a number is added to a register of 64 bits, or taken from it.
fn is_moved(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().is_gpr64()
        && !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory)
}

fn is_exchange(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Xchg | Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b)
}

/// Return whether it is the kernel's memory barrier, `lock add [rsp-4], 0`, which changes nothing.
fn is_barrier(instruction: &Instruction) -> bool {
    let is_number = !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory);
    matches!(instruction.mnemonic(), Mnemonic::Add | Mnemonic::Or)
        && instruction.op_count() == 2
        && is_number
        && instruction.immediate(1) == 0
}

/// Return whether the next instruction may follow.
fn goes_on(instruction: &Instruction) -> bool {
    !matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return | FlowControl::Exception
    )
}

/// Return the positions of the instructions that blocks start with.
fn block_starts(code: &[Instruction], targets: &[Option<u64>]) -> Vec<usize> {
    let mut starts = BTreeSet::new();
    if !code.is_empty() {
        starts.insert(0);
    }
    for (place, instruction) in code.iter().enumerate() {
        let target = targets[place];
        if let Some(Ok(start)) = target.map(|target| code.binary_search_by_key(&target, Instruction::ip)) {
            starts.insert(start);
        }
        let is_end = instruction.flow_control() == FlowControl::ConditionalBranch || !goes_on(instruction);
        if is_end && place + 1 < code.len() {
            starts.insert(place + 1);
        }
    }
    starts.into_iter().collect()
}

fn block_end(starts: &[usize], block: usize, length: usize) -> usize {
    starts.get(block + 1).copied().unwrap_or(length)
}
