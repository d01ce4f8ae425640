//! What one instruction is, for all that ask about it.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};

pub fn has_memory(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory)
}

pub fn is_rep(instruction: &Instruction) -> bool {
    (instruction.has_rep_prefix() || instruction.has_repne_prefix()) && instruction.is_string_instruction()
}

/// Return whether it has a LOCK prefix, or is an exchange with memory, which needs none.
pub fn is_locked(instruction: &Instruction) -> bool {
    instruction.has_lock_prefix() || (instruction.mnemonic() == Mnemonic::Xchg && has_memory(instruction))
}

/// Return the number of a general-purpose register, 0 to 15.
pub fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    full.is_gpr64().then(|| full.number())
}
