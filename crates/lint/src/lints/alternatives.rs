//! alternatives: entries of .altinstructions that the kernel can't carry out at boot, or that patch something else.
//!
//! What is patched, and how a replacement is moved to its place, is apply_alternatives() and __apply_relocation() of
//! Linux 6.12 (arch/x86/kernel/alternative.c).

use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};
use object::elf;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Look, Place, Places};
use crate::alternative::{Entry, REPLACEMENTS, entries};
use crate::binary::{Binary, Section, Target};
use crate::disassembly::{instructions, text};

/// MAX_PATCH_LEN: the kernel stops at boot (BUG_ON) where more is to be patched.
const LONGEST: u64 = 254;
/// ALT_FLAG_DIRECT_CALL: `call *pointer(%rip)` becomes a call of what the pointer holds.
const DIRECT_CALL: u16 = 2;
const INDIRECT_CALL_CODE: [u8; 2] = [0xff, 0x15];
const CALL_CODE: u8 = 0xe8;

pub fn run(look: &Look) -> Vec<Place> {
    let binary = look.binary;
    let entries = match entries(binary) {
        Ok(entries) => entries,
        Err(why) => {
            let address = binary.section_named(crate::alternative::TABLE).map_or(0, |table| table.base);
            return vec![Place::unsure(address, format!("not looked at: {why}"))];
        }
    };
    let replacements = binary.section_named(REPLACEMENTS);
    let mut boundaries = Boundaries::default();
    let mut places = Places::default();
    for entry in &entries {
        let patched = check_patched(binary, entry, &mut boundaries);
        let named = match entry.instruction {
            Target::Address(address) if binary.section_at(address).is_some_and(|section| section.is_code) => {
                Some(address)
            }
            _ => None,
        };
        let address = named.unwrap_or(entry.at);
        let mut say = |message: String| {
            places.push(Place { is_instruction: patched.is_ok(), ..Place::instruction(address, message) });
        };
        if let Err(why) = &patched {
            say(why.clone());
        }
        match replacement(replacements, entry) {
            Ok(code) => wrong_in_replacement(binary, &code).into_iter().for_each(&mut say),
            Err(why) => say(why),
        }
        if let Some(why) = wrong_lengths(binary, entry, address) {
            say(why);
        }
    }
    places.0
}

/// Where instructions begin and functions end, for the functions that were asked for.
#[derive(Default)]
struct Boundaries(FxHashMap<usize, FxHashSet<u64>>);

impl Boundaries {
    fn has(&mut self, binary: &Binary, address: u64) -> bool {
        let Some(function) = binary.function_at(address) else {
            return false;
        };
        let starts = || instructions(binary, &binary.functions[function]).map(|instruction| instruction.ip()).collect();
        self.0.entry(function).or_insert_with(starts).contains(&address)
    }
}

/// Check that what is patched consists of whole instructions of code that is there at boot.
fn check_patched(binary: &Binary, entry: &Entry, boundaries: &mut Boundaries) -> Result<(), String> {
    let (address, section) = match entry.instruction {
        Target::Address(address) => (address, binary.section_at(address)),
        Target::Undefined(name) => {
            return Err(format!("the instruction to patch is in another file, at {name}"));
        }
        Target::Unknown => {
            return Err("the instruction to patch has no place: its relocation can't be followed".into());
        }
    };
    let Some(section) = section else {
        return Err("the instruction to patch lies outside of all sections".into());
    };
    let name = section.name;
    if !section.is_code || name == REPLACEMENTS || name.starts_with(".discard") {
        return Err(format!("the instruction to patch lies in {name}, which holds no code of the running kernel"));
    }
    let end = address + entry.instruction_length;
    if end - section.base > section.bytes.len() as u64 {
        return Err(format!("the {} bytes to patch go beyond the end of {name}", entry.instruction_length));
    }
    // Where instructions begin is only known from where functions do.
    let function = match binary.function_at(address) {
        Some(function) => &binary.functions[function],
        None if section.has_data || !binary.has_functions => return Ok(()),
        None => return Err(format!("the instruction to patch is in no function of {name}")),
    };
    let ends = end == function.end || boundaries.has(binary, end);
    if !boundaries.has(binary, address) || !ends {
        return Err(format!("the {} bytes to patch aren't whole instructions", entry.instruction_length));
    }
    Ok(())
}

/// The instructions of a replacement.
struct Code<'a, 'data> {
    section: &'a Section<'data>,
    start: u64,
    end: u64,
    instructions: Vec<Instruction>,
}

fn replacement<'a, 'data>(section: Option<&'a Section<'data>>, entry: &Entry) -> Result<Code<'a, 'data>, String> {
    let (Target::Address(start), Some(section)) = (entry.replacement, section) else {
        return Err(format!("the replacement isn't in {REPLACEMENTS} of this file"));
    };
    // One without instructions may start where the section ends.
    if start < section.base || start - section.base > section.size {
        return Err(format!("the replacement isn't in {REPLACEMENTS}"));
    }
    let end = start + entry.replacement_length;
    let bytes = (start.wrapping_sub(section.base) as usize)..(end.wrapping_sub(section.base) as usize);
    let Some(bytes) = section.bytes.get(bytes) else {
        return Err(format!(
            "the replacement of {} bytes goes beyond the end of {REPLACEMENTS}",
            entry.replacement_length
        ));
    };
    let instructions = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).into_iter().collect();
    Ok(Code { section, start, end, instructions })
}

/// Return what can't be carried out after it was moved.
fn wrong_in_replacement(binary: &Binary, code: &Code) -> Vec<String> {
    let mut wrong = Vec::new();
    for instruction in &code.instructions {
        if instruction.is_invalid() {
            wrong.push("the replacement isn't made of whole instructions".into());
            continue;
        }
        let offset = instruction.ip() - code.section.base;
        let first = code.section.relocations.partition_point(|relocation| relocation.offset < offset);
        let after = offset + instruction.len() as u64;
        let own = code.section.relocations[first..].iter().take_while(|relocation| relocation.offset < after);
        let mut has_target = false;
        for relocation in own {
            let is_relative = match relocation.kind {
                elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => {
                    true
                }
                elf::R_X86_64_64 | elf::R_X86_64_32 | elf::R_X86_64_32S => false,
                kind => {
                    wrong.push(format!(
                        "the kernel can't move the replacement's `{}` with a relocation of kind {kind}",
                        text(instruction)
                    ));
                    continue;
                }
            };
            has_target |= is_relative && is_movable_branch(instruction);
            if is_relative && !is_movable_branch(instruction) && !instruction.is_ip_rel_memory_operand() {
                wrong.push(format!(
                    "the kernel moves only branches and memory relative to rip, not `{}`",
                    text(instruction)
                ));
            }
        }
        wrong.extend(wrong_branch(binary, code, instruction, has_target));
    }
    wrong
}

/// Return whether it is a branch whose target __apply_relocation() adjusts: jmp, call and jcc.
fn is_movable_branch(instruction: &Instruction) -> bool {
    instruction.is_jmp_short_or_near() || instruction.is_call_near() || instruction.is_jcc_short_or_near()
}

fn wrong_branch(binary: &Binary, code: &Code, instruction: &Instruction, has_relocation: bool) -> Option<String> {
    let is_branch =
        matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
    let target = instruction.near_branch_target();
    if !is_branch || has_relocation || (code.start..=code.end).contains(&target) {
        return None;
    }
    if !is_movable_branch(instruction) {
        return Some(format!("the kernel can't move `{}`, which leaves the replacement", text(instruction)));
    }
    let is_code = binary.section_at(target).is_some_and(|section| section.is_code && section.name != REPLACEMENTS);
    (!is_code).then(|| format!("`{}` of the replacement goes to no code of the running kernel", text(instruction)))
}

fn wrong_lengths(binary: &Binary, entry: &Entry, address: u64) -> Option<String> {
    let (length, new) = (entry.instruction_length, entry.replacement_length);
    if new > length {
        return Some(format!("a replacement of {new} bytes is put in the place of {length}"));
    }
    if length > LONGEST {
        return Some(format!("{length} bytes are to be patched; the kernel stops at more than {LONGEST}"));
    }
    if entry.flags & DIRECT_CALL != 0 {
        let begins = |at: u64, code: &[u8]| {
            let section = binary.section_at(at);
            section.is_some_and(|section| section.bytes[(at - section.base) as usize..].starts_with(code))
        };
        let is_call = matches!(entry.replacement, Target::Address(at) if begins(at, &[CALL_CODE]));
        if (length, new) != (6, 5) || !begins(address, &INDIRECT_CALL_CODE) || !is_call {
            return Some("marked as an indirect call that becomes a direct one, and isn't one".into());
        }
    }
    None
}
