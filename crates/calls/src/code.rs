//! What an instruction of a routine does, as far as its calls depend on it.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Register};

#[derive(Debug, PartialEq, Eq, Clone, Copy, Default)]
pub struct Effect {
    /// It may access the memory that a call is about: not the stack, not what is at a fixed address.
    pub accesses: bool,
    /// The routine ends with it, if its target is elsewhere.
    pub leaves: Option<Target>,
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Target {
    /// A return, or a jump that takes its target from a register.
    Unknown,
    Address(u64),
}

/// Return what an instruction does; nothing for bytes that are none.
pub fn effect(address: u64, bytes: &[u8]) -> Effect {
    let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    if instruction.code() == Code::INVALID {
        return Effect::default();
    }
    let leaves = match instruction.flow_control() {
        FlowControl::Return | FlowControl::IndirectBranch => Some(Target::Unknown),
        FlowControl::UnconditionalBranch => Some(Target::Address(instruction.near_branch_target())),
        _ => None,
    };
    Effect { accesses: accesses_arguments(&instruction), leaves }
}

fn accesses_arguments(instruction: &Instruction) -> bool {
    if instruction.is_stack_instruction() {
        return false;
    }
    if instruction.is_string_instruction() {
        return true;
    }
    let base = instruction.memory_base();
    let has_base = !matches!(base, Register::None | Register::RSP | Register::RIP | Register::EIP);
    let has_segment = matches!(instruction.segment_prefix(), Register::GS | Register::FS);
    has_base && !has_segment && instruction.code() != Code::Lea_r64_m && !is_prefetch(instruction)
}

fn is_prefetch(instruction: &Instruction) -> bool {
    matches!(instruction.code(), Code::Prefetcht0_m8 | Code::Prefetcht1_m8 | Code::Prefetcht2_m8 | Code::Prefetchnta_m8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accesses(bytes: &[u8]) -> bool {
        effect(0x1000, bytes).accesses
    }

    #[test]
    fn only_memory_by_a_register_of_the_routine_is_its_own() {
        assert!(accesses(&[0xf3, 0xa4])); // rep movsb
        assert!(accesses(&[0x48, 0x8b, 0x06])); // mov (%rsi),%rax
        assert!(accesses(&[0x80, 0x3c, 0x07, 0x00])); // cmpb $0,(%rdi,%rax)
        assert!(!accesses(&[0x48, 0x89, 0x1c, 0x24])); // mov %rbx,(%rsp)
        assert!(!accesses(&[0x53])); // push %rbx
        assert!(!accesses(&[0x33, 0x04, 0x95, 0, 0, 0, 0x81])); // xor table(,%rdx,4),%eax
        assert!(!accesses(&[0x48, 0x8b, 0x05, 0, 0, 0, 0])); // mov table(%rip),%rax
        assert!(!accesses(&[0x65, 0x48, 0x8b, 0x00])); // mov %gs:(%rax),%rax
        assert!(!accesses(&[0x0f, 0x18, 0x0e])); // prefetcht0 (%rsi)
        assert!(!accesses(&[0x48, 0x8d, 0x76, 0x20])); // lea 0x20(%rsi),%rsi
    }

    #[test]
    fn a_routine_ends_with_a_return_or_a_jump_elsewhere() {
        assert_eq!(effect(0x1000, &[0xc3]).leaves, Some(Target::Unknown));
        assert_eq!(effect(0x1000, &[0xe9, 0xfb, 0x0f, 0, 0]).leaves, Some(Target::Address(0x2000)));
        assert_eq!(effect(0x1000, &[0x75, 0xfe]).leaves, None);
        assert_eq!(effect(0x1000, &[0x90]), Effect::default());
    }
}
