//! struct alt_instr: where the kernel replaces instructions at boot, and by what.
//!
//! One layout is understood: that of Linux 6.12 (arch/x86/include/asm/alternative.h), 14 bytes: two 32-bit offsets
//! relative to themselves, 16 bits of the feature, 16 of flags, and the lengths in one byte each.

use object::elf;

use crate::binary::{Binary, Section, Target};

pub const TABLE: &str = ".altinstructions";
pub const REPLACEMENTS: &str = ".altinstr_replacement";

const SIZE: usize = 14;
/// Of the offset of the replacement in an entry.
const REPLACEMENT: usize = 4;
const FLAGS: usize = 10;
const LENGTHS: usize = 12;

/// One entry of the table.
pub struct Entry<'data> {
    /// Where the entry is.
    pub at: u64,
    pub instruction: Target<'data>,
    pub replacement: Target<'data>,
    pub flags: u16,
    pub instruction_length: u64,
    pub replacement_length: u64,
}

/// The entries of a file; the error says why its table isn't understood.
pub fn entries<'data>(binary: &Binary<'data>) -> Result<Vec<Entry<'data>>, String> {
    let Some(table) = binary.section_named(TABLE) else {
        return Ok(Vec::new());
    };
    if table.bytes.len() % SIZE != 0 {
        let size = table.bytes.len();
        return Err(format!("{TABLE} has {size} bytes, no multiple of the {SIZE} of an entry of Linux 6.12"));
    }
    let is_field = |offset: u64| matches!(offset as usize % SIZE, 0 | REPLACEMENT);
    if let Some(strange) = table.relocations.iter().find(|relocation| !is_field(relocation.offset)) {
        let offset = strange.offset;
        return Err(format!("{TABLE} has a relocation at {offset:#x}, where an entry of Linux 6.12 has no address"));
    }
    Ok((0..table.bytes.len() / SIZE).map(|number| entry(binary, table, number * SIZE)).collect())
}

fn entry<'data>(binary: &Binary<'data>, table: &Section<'data>, start: usize) -> Entry<'data> {
    let bytes = &table.bytes[start..start + SIZE];
    Entry {
        at: table.base + start as u64,
        instruction: field(binary, table, start),
        replacement: field(binary, table, start + REPLACEMENT),
        flags: u16::from_le_bytes([bytes[FLAGS], bytes[FLAGS + 1]]),
        instruction_length: u64::from(bytes[LENGTHS]),
        replacement_length: u64::from(bytes[LENGTHS + 1]),
    }
}

/// Where an offset that is relative to itself points.
fn field<'data>(binary: &Binary<'data>, table: &Section<'data>, start: usize) -> Target<'data> {
    let at = table.base + start as u64;
    if !binary.is_object {
        let bytes = [0, 1, 2, 3].map(|byte| table.bytes[start + byte]);
        return Target::Address(at.wrapping_add_signed(i64::from(i32::from_le_bytes(bytes))));
    }
    let place = table.relocations.partition_point(|relocation| relocation.offset < start as u64);
    match table.relocations.get(place).filter(|relocation| relocation.offset == start as u64) {
        Some(relocation) if relocation.kind == elf::R_X86_64_PC32 => binary.pointed_at(relocation, 0),
        _ => Target::Unknown,
    }
}
