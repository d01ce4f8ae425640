//! simd-in-kernel: vector and x87 registers in code that may run while they hold a process's values.
//!
//! Only code between kernel_fpu_begin() and kernel_fpu_end() may use them. A function is fine if it calls the first,
//! if its object does, or if all that refer to it are fine.
//!
//! Setting up the x87 unit, and clearing it, is what only a kernel's own assembly does, and uses no value of anybody's:
//! no compiler makes such instructions without others that do. So which function or file they are in doesn't matter.

use iced_x86::{Code, CpuidFeature, Instruction, Mnemonic, Register};

use super::{Look, Place, Places};
use crate::disassembly::instructions;

pub fn run(look: &Look) -> Vec<Place> {
    let x87 = x87_codes();
    let mut places = Places::default();
    for (position, function) in look.binary.functions.iter().enumerate() {
        // Replacements are copies of what stands in functions elsewhere, chosen by the CPU's features.
        let is_replacement = look.binary.sections[function.section].name == crate::alternative::REPLACEMENTS;
        if is_replacement || look.shared.may_use_registers(look.file, position) {
            continue;
        }
        let mut before = Mnemonic::INVALID;
        let mut used = instructions(look.binary, function).filter(|instruction| {
            let follows = std::mem::replace(&mut before, instruction.mnemonic());
            is_simd(instruction, &x87) && !is_upkeep(instruction.mnemonic(), follows)
        });
        if let Some(first) = used.next() {
            let number = 1 + used.count();
            let registers = kind(&first);
            let instructions =
                if number == 1 { "one instruction".to_owned() } else { format!("{number} instructions") };
            let message = format!("{registers} registers in {instructions} outside of kernel_fpu_begin/end");
            // A kernel's tables of pointers and static calls are filled when it runs.
            let is_unsure = !look.binary.is_object && !look.shared.is_called(look.file, position);
            let unknown = if is_unsure { ", unless who calls it by a pointer sees to that" } else { "" };
            places.push(Place { is_unsure, ..Place::instruction(first.ip(), format!("{message}{unknown}")) });
        }
    }
    places.0
}

fn is_simd(instruction: &Instruction, x87: &[bool]) -> bool {
    x87[instruction.code() as usize]
        || (0..instruction.op_count()).any(|operand| is_vector(instruction.op_register(operand)))
}

/// Return whether an instruction sets up, clears or asks for the state of the x87 unit. `fnclex; emms; fildl` clears
/// what an AMD processor tells of the process before (restore_fpregs_from_fpstate() of arch/x86/kernel/fpu/core.c).
fn is_upkeep(mnemonic: Mnemonic, before: Mnemonic) -> bool {
    match mnemonic {
        Mnemonic::Fninit
        | Mnemonic::Fnclex
        | Mnemonic::Fnstsw
        | Mnemonic::Fnstcw
        | Mnemonic::Fldcw
        | Mnemonic::Wait => true,
        Mnemonic::Fild => matches!(before, Mnemonic::Fnclex | Mnemonic::Emms),
        _ => false,
    }
}

fn is_vector(register: Register) -> bool {
    register.is_vector_register() || register.is_mm() || register.is_st() || register.is_tmm() || register.is_k()
}

fn kind(instruction: &Instruction) -> &'static str {
    let registers = (0..instruction.op_count()).map(|operand| instruction.op_register(operand));
    registers.filter(|register| is_vector(*register)).map(name).next().unwrap_or("x87")
}

fn name(register: Register) -> &'static str {
    match register {
        register if register.is_xmm() => "SSE (xmm)",
        register if register.is_ymm() => "AVX (ymm)",
        register if register.is_mm() => "MMX (mm)",
        register if register.is_st() => "x87",
        register if register.is_tmm() => "AMX (tmm)",
        _ => "AVX-512",
    }
}

/// Return, by code, whether an instruction works on the x87 unit, most of which name no register.
fn x87_codes() -> Vec<bool> {
    let is_x87 = |feature: &CpuidFeature| {
        matches!(feature, CpuidFeature::FPU | CpuidFeature::FPU287 | CpuidFeature::FPU387 | CpuidFeature::FPU387SL_ONLY)
    };
    Code::values().map(|code| code.cpuid_features().iter().any(is_x87)).collect()
}
