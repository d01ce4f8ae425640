//! What can be known of a block of instructions before it runs.

use crate::events::Event;
use crate::frontend::Fetched;
use crate::instruction::{is_locked, is_rep};
use crate::pipeline::Op;
use crate::system::{System, system};
use crate::timing::ops;
use crate::tlb::Flush;
use iced_x86::{Code, Decoder, DecoderError, DecoderOptions, FlowControl, Instruction, Mnemonic};

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

/// The facts of one instruction.
#[derive(Debug, Clone, Copy)]
pub struct InstructionFacts {
    pub address: u64,
    /// Any may access memory: push, call and return have no operand there.
    pub access: Access,
}

/// What the memory callback of an instruction has to know; fits into its user data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The index of the instruction in its block.
    pub place: u16,
    pub rep: Option<RepBytes>,
}

/// Which accesses of a REP string instruction tell its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepBytes {
    Stores,
    Loads,
}

impl Access {
    /// Return the facts as a number.
    pub fn packed(self) -> usize {
        let rep = match self.rep {
            None => 0,
            Some(RepBytes::Stores) => 1,
            Some(RepBytes::Loads) => 2,
        };
        usize::from(self.place) << 2 | rep
    }

    pub fn unpacked(word: usize) -> Access {
        let rep = match word & 3 {
            1 => Some(RepBytes::Stores),
            2 => Some(RepBytes::Loads),
            _ => None,
        };
        Access { place: (word >> 2) as u16, rep }
    }
}

/// The facts of a block.
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
    /// What it makes the TLBs forget, when it is over: QEMU ends a block behind each such instruction.
    pub flush: Option<Flush>,
}

impl Facts {
    /// Return what the front end needs of it.
    #[inline(always)]
    pub fn fetched(&self) -> Fetched {
        let is_branch = !matches!(self.exit, Exit::Through | Exit::Rep | Exit::TrapReturn);
        let is_call = matches!(self.exit, Exit::Call { .. } | Exit::IndirectCall | Exit::Return);
        let ops = self.ops.iter().map(|op| u32::from(op.slots)).sum();
        Fetched { start: self.start, last: self.last, end: self.end, ops, is_branch, is_call }
    }

    /// Return the facts of an unknown block.
    pub fn unknown(start: u64) -> Facts {
        Facts {
            start,
            last: start,
            end: start,
            exit: Exit::Through,
            instructions: Vec::new(),
            ops: Vec::new(),
            events: Vec::new(),
            flush: None,
        }
    }
}

/// Which instructions a block has, without what is known of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    pub start: u64,
    pub instructions: u32,
    pub last: u64,
    pub end: u64,
}

impl Range {
    pub fn from_facts(facts: &Facts) -> Range {
        let instructions = facts.instructions.len() as u32;
        Range { start: facts.start, instructions, last: facts.last, end: facts.end }
    }
}

/// Decode a block; None where the decoder finds no instructions. What decides timing takes most of the time, and is
/// found out only in detail.
pub fn decode(start: u64, bytes: &[u8], is_detailed: bool) -> Option<Facts> {
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
    let facts = |(place, instruction): (u16, &Instruction)| InstructionFacts {
        address: instruction.ip(),
        access: Access { place, rep: rep_bytes(instruction) },
    };
    let systems: Vec<_> = instructions
        .iter()
        .enumerate()
        .map(|(place, instruction)| system(instruction, &instructions[..place]))
        .collect();
    Some(Facts {
        start,
        last: last.ip(),
        end: start.wrapping_add(bytes.len() as u64),
        exit: exit_of(&last),
        instructions: (0..).zip(&instructions).map(facts).collect(),
        ops: if is_detailed { ops(&instructions, &systems) } else { Vec::new() },
        events: find_events(&instructions, &systems),
        flush: systems.iter().flatten().filter_map(|system| system.flush).next_back(),
    })
}

/// Return whether these are the first bytes of an instruction, without the rest.
pub fn is_cut(address: u64, bytes: &[u8]) -> bool {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let _ = decoder.decode();
    decoder.last_error() == DecoderError::NoMoreBytes
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

fn find_events(instructions: &[Instruction], systems: &[Option<System>]) -> Vec<(Event, u32)> {
    let count = |matches: &dyn Fn(&Instruction) -> bool| {
        instructions.iter().filter(|instruction| matches(instruction)).count() as u32
    };
    let mut events = vec![
        (Event::rep_instructions, count(&is_rep)),
        (
            Event::fences,
            count(&|instruction| {
                matches!(instruction.mnemonic(), Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Sfence)
            }),
        ),
        (Event::full_fences, count(&|instruction| instruction.mnemonic() == Mnemonic::Mfence)),
        (Event::locked, count(&is_locked)),
        (
            Event::multiplies,
            count(&|instruction| matches!(instruction.mnemonic(), Mnemonic::Imul | Mnemonic::Mul | Mnemonic::Mulx)),
        ),
        (Event::divides, count(&|instruction| matches!(instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv))),
        (Event::io_exits, count(&is_port_access)),
    ];
    events.extend(systems.iter().flatten().map(|system| (system.event, 1)));
    events.retain(|(_, count)| *count > 0);
    events
}

/// Return whether it accesses a device by port; accesses by memory are seen when they happen.
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

/// Return the bytes of a REP string instruction; None if it is not one.
fn rep_bytes(instruction: &Instruction) -> Option<RepBytes> {
    let stores = matches!(
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
    is_rep(instruction).then_some(if stores { RepBytes::Stores } else { RepBytes::Loads })
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0xffff_ffff_8100_0000;

    fn facts(bytes: &[u8]) -> Facts {
        decode(START, bytes, true).unwrap()
    }

    fn count(bytes: &[u8], event: Event) -> u32 {
        facts(bytes).events.iter().filter(|(other, _)| *other == event).map(|(_, count)| count).sum()
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
        assert_eq!(count(&[0x0f, 0x22, 0xd8, 0x0f, 0x20, 0xd8], Event::cr3_writes), 1); // to and from %cr3
        assert_eq!(count(&[0x0f, 0x01, 0xf8, 0x0f, 0x01, 0xf8], Event::swapgs), 2);
        assert_eq!(count(&[0xf3, 0xa4], Event::rep_instructions), 1);
    }

    #[test]
    fn the_bytes_of_a_string_instruction_are_those_that_it_stores_or_else_those_that_it_loads() {
        let rep = |bytes: &[u8]| facts(bytes).instructions.last().unwrap().access.rep;
        assert_eq!(rep(&[0x90, 0xf3, 0xa4]), Some(RepBytes::Stores)); // rep movsb
        assert_eq!(rep(&[0xf3, 0xa6]), Some(RepBytes::Loads)); // repe cmpsb
        assert_eq!(rep(&[0xa4]), None);
    }

    #[test]
    fn facts_of_an_access_survive_packing() {
        for access in [
            Access { place: 0, rep: None },
            Access { place: 511, rep: Some(RepBytes::Stores) },
            Access { place: 1, rep: Some(RepBytes::Loads) },
        ] {
            assert_eq!(Access::unpacked(access.packed()), access);
        }
    }
}
