//! Objects for tests, made of given code.

use object::write::{Object, Relocation, StandardSection, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionFlags, SectionKind, SymbolFlags, SymbolKind,
    SymbolScope, elf,
};

/// Code of one function and the calls in it.
pub struct Specimen<'a> {
    pub name: &'a str,
    pub code: &'a [u8],
    /// Offset of the field, kind and name of each relocation.
    pub relocations: &'a [(u64, u32, &'a str)],
}

/// Return an object with these functions, in order.
pub fn object(functions: &[Specimen]) -> Vec<u8> {
    object_with(functions, &[], &[])
}

/// Return such an object with entries of .altinstructions, and replacements. An entry is the name of what it patches,
/// the offset of its replacement and the two lengths.
pub fn object_with(functions: &[Specimen], entries: &[(&str, i64, u8, u8)], replacements: &[u8]) -> Vec<u8> {
    object_of_version(functions, entries, replacements, (14, 12))
}

/// Return such an object with entries as a version of Linux has them: their size, and where the lengths are.
pub fn object_of_version(
    functions: &[Specimen],
    entries: &[(&str, i64, u8, u8)],
    replacements: &[u8],
    (size, lengths): (usize, usize),
) -> Vec<u8> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let text = object.section_id(StandardSection::Text);
    for function in functions {
        let start = object.append_section_data(text, function.code, 16);
        let size = function.code.len() as u64;
        object.add_symbol(symbol(function.name, start, size, SymbolSection::Section(text)));
        for (offset, kind, name) in function.relocations {
            let known = object.symbol_id(name.as_bytes());
            let target = known.unwrap_or_else(|| object.add_symbol(symbol(name, 0, 0, SymbolSection::Undefined)));
            let flags = RelocationFlags::Elf { r_type: *kind };
            let relocation = Relocation { offset: start + offset, symbol: target, addend: -4, flags };
            object.add_relocation(text, relocation).unwrap();
        }
    }
    if !entries.is_empty() {
        let table = object.add_section(Vec::new(), b".altinstructions".to_vec(), SectionKind::ReadOnlyData);
        let other = object.add_section(Vec::new(), b".altinstr_replacement".to_vec(), SectionKind::Text);
        object.append_section_data(other, replacements, 1);
        let replacement = object.section_symbol(other);
        for (name, offset, length, new) in entries {
            let mut entry = vec![0; size];
            (entry[lengths], entry[lengths + 1]) = (*length, *new);
            let start = object.append_section_data(table, &entry, 1);
            let patched = object.symbol_id(name.as_bytes()).unwrap();
            let flags = RelocationFlags::Elf { r_type: elf::R_X86_64_PC32 };
            let field = |offset, symbol, addend| Relocation { offset, symbol, addend, flags };
            object.add_relocation(table, field(start, patched, 0)).unwrap();
            object.add_relocation(table, field(start + 4, replacement, *offset)).unwrap();
        }
    }
    object.write().unwrap()
}

/// Return an object whose functions are in a .data section that may be executed, before other data.
pub fn object_of_data(functions: &[Specimen], data: &[u8]) -> Vec<u8> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let section = object.section_id(StandardSection::Data);
    let flags = u64::from(elf::SHF_ALLOC | elf::SHF_WRITE | elf::SHF_EXECINSTR);
    object.section_mut(section).flags = SectionFlags::Elf { sh_flags: flags };
    for function in functions {
        let start = object.append_section_data(section, function.code, 16);
        object.add_symbol(symbol(function.name, start, function.code.len() as u64, SymbolSection::Section(section)));
    }
    object.append_section_data(section, data, 1);
    object.write().unwrap()
}

fn symbol(name: &str, value: u64, size: u64, section: SymbolSection) -> Symbol {
    Symbol {
        name: name.into(),
        value,
        size,
        kind: SymbolKind::Text,
        scope: SymbolScope::Linkage,
        weak: false,
        section,
        flags: SymbolFlags::None,
    }
}
