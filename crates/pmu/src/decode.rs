//! What can be known of a block of instructions before it runs.

use crate::events::Event;
use crate::pipeline::{Kind, NOWHERE, Op};
use crate::timing::ops;
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

/// How control leaves a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Into what follows: the block was cut, or a system call was made.
    Through,
    Conditional {
        target: u64,
    },
    Jump {
        target: u64,
    },
    IndirectJump,
    Call {
        target: u64,
    },
    IndirectCall,
    Return,
    /// iret: back to what was interrupted, or to user code.
    TrapReturn,
    /// A REP string instruction: TCG leaves and enters it for every iteration.
    Rep,
}

/// Of one instruction.
#[derive(Debug, Clone, Copy)]
pub struct InstructionFacts {
    pub address: u64,
    /// Its memory accesses; None: it makes none of its own.
    pub access: Option<Access>,
}

/// What the memory callback of an instruction has to know; fits into its user data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Access {
    /// Registers whose value at the block's entry is the address; bit by number of the register.
    pub entry: u16,
    /// The address was loaded within the block.
    pub loaded: bool,
    pub rep: Option<RepBytes>,
    /// Of the instruction in its block.
    pub place: u16,
}

/// Which accesses of a REP string instruction tell its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepBytes {
    Stores,
    Loads,
}

impl Access {
    /// The facts as a number.
    pub fn packed(self) -> usize {
        let rep = match self.rep {
            None => 0,
            Some(RepBytes::Stores) => 2,
            Some(RepBytes::Loads) => 4,
        };
        usize::from(self.place) << 32 | usize::from(self.entry) << 16 | rep | usize::from(self.loaded)
    }

    pub fn unpacked(word: usize) -> Access {
        let rep = match word & 6 {
            2 => Some(RepBytes::Stores),
            4 => Some(RepBytes::Loads),
            _ => None,
        };
        Access { entry: (word >> 16) as u16, loaded: word & 1 == 1, rep, place: (word >> 32) as u16 }
    }
}

/// Of a block.
#[derive(Debug)]
pub struct Facts {
    pub start: u64,
    /// Address of the last instruction.
    pub last: u64,
    /// Address behind it.
    pub end: u64,
    pub exit: Exit,
    /// Address of each instruction.
    pub instructions: Vec<InstructionFacts>,
    /// What decides their timing; empty unless events=all.
    pub ops: Vec<Op>,
    /// What one execution counts, apart from instructions and branches.
    pub events: Vec<(Event, u32)>,
    /// Registers that hold a loaded value when the block ends, whatever they held before.
    pub gain: u16,
    /// Registers that then still hold what was loaded before the block.
    pub keep: u16,
}

impl Facts {
    /// Nothing yet.
    pub fn unknown(start: u64) -> Facts {
        let (instructions, events) = (Vec::new(), Vec::new());
        Facts {
            start,
            last: start,
            end: start,
            exit: Exit::Through,
            instructions,
            ops: Vec::new(),
            events,
            gain: 0,
            keep: 0,
        }
    }
}

fn reads_memory(instruction: &Instruction) -> bool {
    has_memory(instruction)
        && !matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop | Mnemonic::Push | Mnemonic::Prefetcht0)
        && !(instruction.mnemonic() == Mnemonic::Mov && instruction.op0_kind() == OpKind::Memory)
}

pub fn has_memory(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory)
}

/// Decodes a block; None where the decoder finds no instructions. `width`: instructions per cycle at best. Where values
/// come from takes most of the time, and is followed only in detail.
pub fn decode(start: u64, bytes: &[u8], width: u32, is_detailed: bool) -> Option<Facts> {
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut instructions = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.code() == Code::INVALID {
            break;
        }
        instructions.push(instruction);
    }
    let last = *instructions.last()?;
    let exit = exit_of(&last);
    let mut flow = Flow::new();
    let facts = instructions
        .iter()
        .map(|each| InstructionFacts { address: each.ip(), access: if is_detailed { flow.step(each) } else { None } });
    let mut facts: Vec<InstructionFacts> = facts.collect();
    for (place, access) in facts.iter_mut().map(|each| &mut each.access).enumerate() {
        if let Some(access) = access {
            access.place = place as u16;
        }
    }
    let ops = if is_detailed { ops(&instructions) } else { Vec::new() };
    let mut events = counted(&instructions);
    if matches!(exit, Exit::Conditional { target } if target == start) {
        let carried = carried_latency(&instructions).saturating_sub(instructions.len() as u32 / width);
        events.push((Event::chain_cycles, carried));
    }
    events.retain(|(_, count)| *count > 0);
    Some(Facts {
        start,
        last: last.ip(),
        end: start + bytes.len() as u64,
        exit,
        instructions: facts,
        ops,
        events,
        gain: flow.gain(),
        keep: flow.keep(),
    })
}

fn exit_of(last: &Instruction) -> Exit {
    if is_rep(last) {
        return Exit::Rep;
    }
    match last.flow_control() {
        FlowControl::ConditionalBranch => Exit::Conditional { target: last.near_branch_target() },
        FlowControl::UnconditionalBranch => Exit::Jump { target: last.near_branch_target() },
        FlowControl::IndirectBranch => Exit::IndirectJump,
        FlowControl::IndirectCall => Exit::IndirectCall,
        FlowControl::Call if is_near_call(last) => Exit::Call { target: last.near_branch_target() },
        FlowControl::Return if is_iret(last) => Exit::TrapReturn,
        FlowControl::Return if matches!(last.mnemonic(), Mnemonic::Ret) => Exit::Return,
        _ => Exit::Through,
    }
}

fn is_near_call(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Call
}

fn is_iret(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq)
}

pub fn is_rep(instruction: &Instruction) -> bool {
    (instruction.has_rep_prefix() || instruction.has_repne_prefix()) && instruction.is_string_instruction()
}

fn counted(instructions: &[Instruction]) -> Vec<(Event, u32)> {
    let count =
        |matches: &dyn Fn(&Instruction) -> bool| instructions.iter().filter(|each| matches(each)).count() as u32;
    vec![
        (Event::rep_instructions, count(&is_rep)),
        (
            Event::fences,
            count(&|each| matches!(each.mnemonic(), Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Sfence)),
        ),
        (Event::full_fences, count(&|each| each.mnemonic() == Mnemonic::Mfence)),
        (Event::locked, count(&is_locked)),
        (Event::multiplies, count(&|each| matches!(each.mnemonic(), Mnemonic::Imul | Mnemonic::Mul | Mnemonic::Mulx))),
        (Event::divides, count(&|each| matches!(each.mnemonic(), Mnemonic::Div | Mnemonic::Idiv))),
        (Event::serializing, count(&is_serializing)),
        (Event::io_exits, count(&is_port_access)),
    ]
}

/// With a LOCK prefix, or an exchange with memory, which needs none.
pub fn is_locked(instruction: &Instruction) -> bool {
    instruction.has_lock_prefix() || (instruction.mnemonic() == Mnemonic::Xchg && has_memory(instruction))
}

/// Instructions that wait for all before them, and are slow besides.
pub fn is_serializing(instruction: &Instruction) -> bool {
    let control = (0..instruction.op_count())
        .any(|operand| instruction.op_kind(operand) == OpKind::Register && instruction.op_register(operand).is_cr());
    let writes_control = control && instruction.op0_kind() == OpKind::Register && instruction.op0_register().is_cr();
    writes_control
        || is_iret(instruction)
        || matches!(
            instruction.mnemonic(),
            Mnemonic::Cpuid
                | Mnemonic::Wrmsr
                | Mnemonic::Invlpg
                | Mnemonic::Invpcid
                | Mnemonic::Swapgs
                | Mnemonic::Lidt
        )
}

/// Access to a device by port; those by memory are seen when they happen.
fn is_port_access(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::In
            | Mnemonic::Out
            | Mnemonic::Insb
            | Mnemonic::Insw
            | Mnemonic::Insd
            | Mnemonic::Outsb
            | Mnemonic::Outsw
            | Mnemonic::Outsd
    )
}

/// Number of a general-purpose register, 0 to 15.
pub fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    full.is_gpr64().then(|| full.number())
}

/// Where the values of registers come from, instruction by instruction.
struct Flow {
    factory: InstructionInfoFactory,
    loaded: [bool; 16],
    /// Registers whose value at entry decides this one's.
    entry: [u16; 16],
}

impl Flow {
    fn new() -> Flow {
        let entry = std::array::from_fn(|register| 1 << register);
        Flow { factory: InstructionInfoFactory::new(), loaded: [false; 16], entry }
    }

    fn step(&mut self, instruction: &Instruction) -> Option<Access> {
        let access = self.access(instruction);
        let loads = reads_memory(instruction) || instruction.mnemonic() == Mnemonic::Pop;
        let (mut loaded, mut entry) = (loads, 0);
        let mut written = Vec::new();
        for used in self.factory.info(instruction).used_registers() {
            let Some(register) = number(used.register()).filter(|register| *register != STACK_POINTER) else {
                continue;
            };
            let (reads, writes) = match used.access() {
                OpAccess::Read | OpAccess::CondRead => (true, false),
                OpAccess::Write | OpAccess::CondWrite => (false, true),
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
                _ => (false, false),
            };
            if reads && !loads {
                loaded |= self.loaded[register];
                entry |= self.entry[register];
            }
            if writes {
                written.push(register);
            }
        }
        for register in written {
            self.loaded[register] = loaded;
            self.entry[register] = entry;
        }
        access
    }

    fn access(&self, instruction: &Instruction) -> Option<Access> {
        if is_rep(instruction) {
            let writes = matches!(
                instruction.mnemonic(),
                Mnemonic::Movsb
                    | Mnemonic::Movsw
                    | Mnemonic::Movsd
                    | Mnemonic::Movsq
                    | Mnemonic::Stosb
                    | Mnemonic::Stosw
                    | Mnemonic::Stosd
                    | Mnemonic::Stosq
                    | Mnemonic::Insb
                    | Mnemonic::Insw
                    | Mnemonic::Insd
            );
            let rep = if writes { RepBytes::Stores } else { RepBytes::Loads };
            return Some(Access { rep: Some(rep), ..Access::default() });
        }
        let mut access = Access::default();
        if has_memory(instruction) {
            for register in [instruction.memory_base(), instruction.memory_index()] {
                if let Some(register) = number(register).filter(|register| *register != STACK_POINTER) {
                    access.loaded |= self.loaded[register];
                    access.entry |= self.entry[register];
                }
            }
        }
        // Also without an operand in memory: push, pop, call and return use the stack.
        Some(access)
    }

    fn gain(&self) -> u16 {
        (0..16).filter(|register| self.loaded[*register]).fold(0, |mask, register| mask | 1 << register)
    }

    fn keep(&self) -> u16 {
        (0..16)
            .filter(|register| self.entry[*register] & 1 << register != 0)
            .fold(0, |mask, register| mask | 1 << register)
    }
}

/// Its value never waits: processors follow pushes and pops while they decode.
const STACK_POINTER: usize = 4;

/// Cycles that one turn of a loop of one block takes if only its dependencies count: how much later all registers are
/// ready after four turns than after two, halved.
fn carried_latency(instructions: &[Instruction]) -> u32 {
    let ops = ops(instructions);
    let mut ready = [0; 19];
    let turn = |ready: &mut [u32; 19]| {
        for (op, instruction) in ops.iter().zip(instructions) {
            let latest = |registers: &[u8]| registers.iter().map(|each| ready[*each as usize]).max().unwrap_or(0);
            let loaded = if reads_memory(instruction) { latest(&op.address) + LOAD } else { 0 };
            let unit = if op.kind == Kind::Divide { DIVIDE } else { 0 };
            let done = latest(&op.sources).max(loaded) + u32::from(op.latency) + unit;
            op.targets.iter().for_each(|target| ready[*target as usize] = done);
            ready[NOWHERE as usize] = 0;
        }
    };
    turn(&mut ready);
    turn(&mut ready);
    let early = ready;
    turn(&mut ready);
    turn(&mut ready);
    ready.iter().zip(early).map(|(late, early)| (late - early) / 2).max().unwrap_or(0)
}

const LOAD: u32 = 4;
const DIVIDE: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0xffff_ffff_8100_0000;

    fn facts(bytes: &[u8]) -> Facts {
        decode(START, bytes, 4, true).unwrap()
    }

    fn count(bytes: &[u8], event: Event) -> u32 {
        facts(bytes).events.iter().find(|(each, _)| *each == event).map_or(0, |(_, count)| *count)
    }

    #[test]
    fn the_last_instruction_says_how_a_block_is_left() {
        for (bytes, exit) in [
            (&[0x90][..], Exit::Through),
            (&[0x75, 0x02], Exit::Conditional { target: START + 4 }),
            (&[0xeb, 0x10], Exit::Jump { target: START + 0x12 }),
            (&[0xff, 0xe0], Exit::IndirectJump),
            (&[0xe8, 0, 0, 0, 0], Exit::Call { target: START + 5 }),
            (&[0xff, 0xd0], Exit::IndirectCall),
            (&[0xc3], Exit::Return),
            (&[0x48, 0xcf], Exit::TrapReturn),
            (&[0xf3, 0x48, 0xa5], Exit::Rep),
            (&[0x0f, 0x05], Exit::Through), // syscall
        ] {
            assert_eq!(facts(bytes).exit, exit, "{bytes:x?}");
        }
    }

    #[test]
    fn costly_instructions_are_counted() {
        assert_eq!(count(&[0x0f, 0xae, 0xf0, 0x0f, 0xae, 0xe8], Event::fences), 2); // mfence lfence
        assert_eq!(count(&[0xf0, 0xff, 0x07, 0x48, 0x87, 0x07], Event::locked), 2); // lock inc (%rdi); xchg %rax,(%rdi)
        assert_eq!(count(&[0x66, 0x87, 0xdb], Event::locked), 0); // xchg %bx,%bx
        assert_eq!(count(&[0x48, 0xf7, 0xf1], Event::divides), 1); // div %rcx
        assert_eq!(count(&[0x0f, 0x22, 0xd8, 0x0f, 0x20, 0xd8], Event::serializing), 1); // to and from %cr3
        assert_eq!(count(&[0xf3, 0xa4], Event::rep_instructions), 1);
    }

    #[test]
    fn an_address_that_was_loaded_makes_a_dependent_access() {
        // mov (%rdi),%rax; mov 8(%rax),%rcx; mov (%rsi),%rdx
        let facts = facts(&[0x48, 0x8b, 0x07, 0x48, 0x8b, 0x48, 0x08, 0x48, 0x8b, 0x16]);
        let access = |index: usize| facts.instructions[index].access.unwrap();
        assert_eq!(access(0), Access { entry: 1 << 7, place: 0, ..Access::default() });
        assert!(access(1).loaded);
        assert_eq!(access(2), Access { entry: 1 << 6, place: 2, ..Access::default() });
        assert_eq!(facts.gain, 1 << 0 | 1 << 1 | 1 << 2);
        assert_eq!(facts.keep & (1 << 0 | 1 << 1 | 1 << 6), 1 << 6);
    }

    #[test]
    fn a_loop_is_as_slow_as_what_it_carries() {
        // 1: imul %rax,%rax; dec %rcx; jnz 1b
        assert_eq!(count(&[0x48, 0x0f, 0xaf, 0xc0, 0x48, 0xff, 0xc9, 0x75, 0xf7], Event::chain_cycles), 3);
        // 1: mov (%rax),%rax; test %rax,%rax; jnz 1b
        assert_eq!(count(&[0x48, 0x8b, 0x00, 0x48, 0x85, 0xc0, 0x75, 0xf8], Event::chain_cycles), 4);
        // 1: mov (%rdi),%rax; add $8,%rdi; dec %rcx; jnz 1b
        assert_eq!(
            count(&[0x48, 0x8b, 0x07, 0x48, 0x83, 0xc7, 8, 0x48, 0xff, 0xc9, 0x75, 0xf4], Event::chain_cycles),
            0
        );
    }

    #[test]
    fn facts_of_an_access_survive_packing() {
        for access in [
            Access::default(),
            Access { entry: 0xffff, loaded: true, rep: None, place: 511 },
            Access { entry: 1, loaded: false, rep: Some(RepBytes::Stores), place: 0 },
            Access { entry: 0, loaded: true, rep: Some(RepBytes::Loads), place: 1 },
        ] {
            assert_eq!(Access::unpacked(access.packed()), access);
        }
    }
}
