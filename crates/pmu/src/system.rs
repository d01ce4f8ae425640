//! Instructions that only kernels need: what each counts as, whether everything waits for it, and which translations it
//! drops.
//!
//! What serializes is in the Intel SDM, volume 3, 9.3 (Serializing Instructions), and the AMD APM, volume 2, 7.6.4:
//! neither names SWAPGS, RDMSR, VERW or XSAVE and its like.

use crate::events::Event;
use crate::tlb::Flush;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// The facts of one such instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct System {
    pub event: Event,
    /// It starts when everything before is done, and nothing after it starts before it is done.
    pub is_serializing: bool,
    pub flush: Option<Flush>,
}

/// IA32_SPEC_CTRL and IA32_PRED_CMD; the latter orders an indirect branch prediction barrier.
const SPEC_CTRL: u64 = 0x48;
const PRED_CMD: u64 = 0x49;
const TSC_DEADLINE: u64 = 0x6e0;
/// Registers of the local APIC.
const X2APIC: std::ops::RangeInclusive<u64> = 0x800..=0x8ff;

/// Set in CR3 while user code runs, where page tables are isolated (PTI_USER_PGTABLE_BIT).
const USER_TABLE: u64 = 1 << 12;

/// Return what the instruction is if it is one of these; `preceding` is what comes before it in its block.
pub fn system(instruction: &Instruction, preceding: &[Instruction]) -> Option<System> {
    let plain = |event| System { event, is_serializing: false, flush: None };
    let serializing = |event| System { event, is_serializing: true, flush: None };
    let flushing = |event, flush| System { event, is_serializing: true, flush: Some(flush) };
    Some(match instruction.mnemonic() {
        Mnemonic::Mov => match written_register(instruction) {
            Register::CR3 => flushing(Event::cr3_writes, cr3_flush(instruction, preceding)),
            Register::CR4 => flushing(Event::control_writes, Flush::All),
            Register::CR8 => plain(Event::control_writes),
            register if register.is_cr() => serializing(Event::control_writes),
            register if register.is_dr() => serializing(Event::serializing),
            _ => return None,
        },
        Mnemonic::Clts | Mnemonic::Lmsw => serializing(Event::control_writes),
        Mnemonic::Swapgs => plain(Event::swapgs),
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => serializing(Event::irets),
        Mnemonic::Wrmsr => match selected_register(preceding) {
            Some(PRED_CMD) => plain(Event::ibpbs),
            Some(SPEC_CTRL | TSC_DEADLINE) => plain(Event::msr_writes),
            Some(register) if X2APIC.contains(&register) => plain(Event::msr_writes),
            _ => serializing(Event::msr_writes),
        },
        Mnemonic::Rdmsr => plain(Event::msr_reads),
        Mnemonic::Invlpg => flushing(Event::tlb_invalidations, Flush::One),
        Mnemonic::Invpcid => flushing(Event::tlb_invalidations, Flush::All),
        Mnemonic::Xsave
        | Mnemonic::Xsave64
        | Mnemonic::Xsavec
        | Mnemonic::Xsavec64
        | Mnemonic::Xsaveopt
        | Mnemonic::Xsaveopt64
        | Mnemonic::Xsaves
        | Mnemonic::Xsaves64
        | Mnemonic::Xrstor
        | Mnemonic::Xrstor64
        | Mnemonic::Xrstors
        | Mnemonic::Xrstors64
        | Mnemonic::Fxsave
        | Mnemonic::Fxsave64
        | Mnemonic::Fxrstor
        | Mnemonic::Fxrstor64 => plain(Event::xsaves),
        Mnemonic::Verw => plain(Event::verws),
        Mnemonic::Cpuid
        | Mnemonic::Serialize
        | Mnemonic::Lgdt
        | Mnemonic::Lidt
        | Mnemonic::Lldt
        | Mnemonic::Ltr
        | Mnemonic::Invd
        | Mnemonic::Wbinvd => serializing(Event::serializing),
        _ => return None,
    })
}

fn written_register(instruction: &Instruction) -> Register {
    if instruction.op0_kind() == OpKind::Register { instruction.op0_register() } else { Register::None }
}

/// Return whether CR3 gets the other page table of the same task, as Linux does it where user code enters and leaves
/// the kernel (SWITCH_TO_KERNEL_CR3 and SWITCH_TO_USER_CR3 in arch/x86/entry/calling.h), or anything else.
fn cr3_flush(write: &Instruction, preceding: &[Instruction]) -> Flush {
    let is_exchanged = preceding.last().is_some_and(|last| {
        let sets_bits = match last.mnemonic() {
            Mnemonic::Or => last.try_immediate(1).is_ok_and(|bits| bits & USER_TABLE != 0),
            Mnemonic::And => last.try_immediate(1).is_ok_and(|bits| bits & USER_TABLE == 0),
            _ => false,
        };
        sets_bits && written_register(last) == write.op1_register()
    });
    if is_exchanged { Flush::Isolation } else { Flush::Local }
}

/// Return the number of a model-specific register where the block tells it: what it put into %ecx last.
fn selected_register(preceding: &[Instruction]) -> Option<u64> {
    let loads = |instruction: &&Instruction| written_register(instruction).full_register() == Register::RCX;
    let last = preceding.iter().rev().find(loads)?;
    if last.mnemonic() == Mnemonic::Mov { last.try_immediate(1).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn last(bytes: &[u8]) -> Option<System> {
        let instructions: Vec<_> = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).into_iter().collect();
        let (last, preceding) = instructions.split_last().unwrap();
        system(last, preceding)
    }

    fn describe(bytes: &[u8]) -> (Event, bool, Option<Flush>) {
        let system = last(bytes).unwrap();
        (system.event, system.is_serializing, system.flush)
    }

    #[test]
    fn each_has_an_event_of_its_own_and_only_some_make_all_others_wait() {
        for (bytes, expected) in [
            (&[0x0f, 0x22, 0xd8][..], (Event::cr3_writes, true, Some(Flush::Local))),
            (&[0x0f, 0x22, 0xe0], (Event::control_writes, true, Some(Flush::All))),
            (&[0x0f, 0x22, 0xc0], (Event::control_writes, true, None)), // %cr0
            (&[0x44, 0x0f, 0x22, 0xc0], (Event::control_writes, false, None)), // %cr8
            (&[0x0f, 0x01, 0xf8], (Event::swapgs, false, None)),
            (&[0x48, 0xcf], (Event::irets, true, None)),
            (&[0x0f, 0x30], (Event::msr_writes, true, None)),
            (&[0x0f, 0x32], (Event::msr_reads, false, None)),
            (&[0x0f, 0x01, 0x38], (Event::tlb_invalidations, true, Some(Flush::One))), // invlpg (%rax)
            (&[0x66, 0x0f, 0x38, 0x82, 0x08], (Event::tlb_invalidations, true, Some(Flush::All))), // invpcid
            (&[0x48, 0x0f, 0xae, 0x27], (Event::xsaves, false, None)),
            (&[0x48, 0x0f, 0xae, 0x2f], (Event::xsaves, false, None)), // xrstor64
            (&[0x48, 0x0f, 0xae, 0x07], (Event::xsaves, false, None)), // fxsave64
            (&[0x0f, 0x00, 0x28], (Event::verws, false, None)),
            (&[0x0f, 0xa2], (Event::serializing, true, None)), // cpuid
            (&[0x0f, 0x01, 0x18], (Event::serializing, true, None)), // lidt (%rax)
        ] {
            assert_eq!(describe(bytes), expected, "{bytes:x?}");
        }
        assert_eq!(last(&[0x0f, 0x20, 0xd8]), None); // mov %cr3,%rax
        assert_eq!(last(&[0x0f, 0xae, 0xf8]), None); // sfence
    }

    #[test]
    fn the_register_that_a_block_names_says_what_a_write_of_it_does() {
        let write = |register: u8| describe(&[0xb9, register, 0, 0, 0, 0x31, 0xd2, 0x0f, 0x30]);
        assert_eq!(write(0x49), (Event::ibpbs, false, None));
        assert_eq!(write(0x48), (Event::msr_writes, false, None));
        assert_eq!(write(0x77), (Event::msr_writes, true, None));
        // mov $0x49,%ecx; mov %esi,%ecx; wrmsr
        assert_eq!(describe(&[0xb9, 0x49, 0, 0, 0, 0x89, 0xf1, 0x0f, 0x30]), (Event::msr_writes, true, None));
    }

    #[test]
    fn the_other_page_table_of_the_same_task_is_told_from_another_tasks() {
        let flush = |bytes: &[u8]| describe(bytes).2;
        // or $0x1000,%rdi; mov %rdi,%cr3
        assert_eq!(flush(&[0x48, 0x81, 0xcf, 0, 0x10, 0, 0, 0x0f, 0x22, 0xdf]), Some(Flush::Isolation));
        // and $~0x1800,%rax; mov %rax,%cr3
        assert_eq!(flush(&[0x48, 0x25, 0xff, 0xe7, 0xff, 0xff, 0x0f, 0x22, 0xd8]), Some(Flush::Isolation));
        // or $1,%rax; or %rax,%rdx; mov of another register
        assert_eq!(flush(&[0x48, 0x83, 0xc8, 0x01, 0x0f, 0x22, 0xd8]), Some(Flush::Local));
        assert_eq!(flush(&[0x48, 0x09, 0xc2, 0x0f, 0x22, 0xda]), Some(Flush::Local));
        assert_eq!(flush(&[0x48, 0x81, 0xcf, 0, 0x10, 0, 0, 0x0f, 0x22, 0xd8]), Some(Flush::Local));
    }
}
