//! struct alt_instr: where the kernel replaces instructions at boot, and by what.
//!
//! Its layout changed with Linux's versions (arch/x86/include/asm/alternative.h), and nothing in a file says which it
//! is: the one is taken in which the entries point at replacements.

use object::elf;

use crate::binary::{Binary, Section, Target};

pub const TABLE: &str = ".altinstructions";
pub const REPLACEMENTS: &str = ".altinstr_replacement";

/// Of the offset of the replacement in an entry: after that of the instruction, both relative to themselves.
const REPLACEMENT: usize = 4;

/// After the offsets come 16 bits of the feature, and what an entry of some versions has.
struct Layout {
    size: usize,
    /// Offset of 16 bits of flags.
    flags: Option<usize>,
    /// Offset of the two lengths, in one byte each.
    lengths: usize,
}

const LAYOUTS: [Layout; 3] = [
    // Since Linux 6.3.
    Layout { size: 14, flags: Some(10), lengths: 12 },
    // Since Linux 5.13.
    Layout { size: 12, flags: None, lengths: 10 },
    // Before, with the length of the padding behind.
    Layout { size: 13, flags: None, lengths: 10 },
];

/// One entry of the table.
pub struct Entry<'data> {
    /// Where the entry is.
    pub at: u64,
    pub instruction: Target<'data>,
    pub replacement: Target<'data>,
    /// 0 where entries have none.
    pub flags: u16,
    pub instruction_length: u64,
    pub replacement_length: u64,
}

/// Return the entries of a file; the error says why its table isn't understood.
pub fn entries<'data>(binary: &Binary<'data>) -> Result<Vec<Entry<'data>>, String> {
    let Some(table) = binary.section_named(TABLE).filter(|table| !table.bytes.is_empty()) else {
        return Ok(Vec::new());
    };
    let mut best = None;
    for layout in LAYOUTS.iter().filter(|layout| can_be(table, layout)) {
        let starts = (0..table.bytes.len() / layout.size).map(|number| number * layout.size);
        let entries: Vec<Entry> = starts.map(|start| entry(binary, table, layout, start)).collect();
        let fitting = entries.iter().filter(|entry| is_replacement(binary, entry)).count();
        // Where a linker has resolved the offsets, nothing but their values tells one layout from another.
        let is_sound = binary.is_object || fitting * 2 > entries.len();
        if is_sound && best.as_ref().is_none_or(|(most, _)| fitting > *most) {
            best = Some((fitting, entries));
        }
    }
    let size = table.bytes.len();
    best.map(|(_, entries)| entries)
        .ok_or_else(|| format!("the {size} bytes of {TABLE} are not entries of a known version of Linux"))
}

/// Return whether the table can hold whole entries, and its relocations are where entries have addresses.
fn can_be(table: &Section, layout: &Layout) -> bool {
    let is_field = |offset: u64| matches!(offset as usize % layout.size, 0 | REPLACEMENT);
    table.bytes.len().is_multiple_of(layout.size)
        && table.relocations.iter().all(|relocation| is_field(relocation.offset))
}

fn is_replacement(binary: &Binary, entry: &Entry) -> bool {
    let Target::Address(start) = entry.replacement else {
        return false;
    };
    // One without instructions may start where the section ends.
    binary
        .section_named(REPLACEMENTS)
        .is_some_and(|section| (section.base..=section.base + section.size).contains(&start))
}

fn entry<'data>(binary: &Binary<'data>, table: &Section<'data>, layout: &Layout, start: usize) -> Entry<'data> {
    let bytes = &table.bytes[start..start + layout.size];
    Entry {
        at: table.base + start as u64,
        instruction: field(binary, table, start),
        replacement: field(binary, table, start + REPLACEMENT),
        flags: layout.flags.map_or(0, |flags| u16::from_le_bytes([bytes[flags], bytes[flags + 1]])),
        instruction_length: u64::from(bytes[layout.lengths]),
        replacement_length: u64::from(bytes[layout.lengths + 1]),
    }
}

/// Return the target of an offset that is relative to its own address.
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
