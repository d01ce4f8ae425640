//! An object or a linked kernel: its code, its functions, its relocations.
//!
//! Sections of an object all start at 0. Each gets an address range of its own here, so that an address says which
//! section it is in; a linked kernel has its own addresses.

use object::read::elf::{ElfFile64, FileHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionFlags};
use object::{SectionKind, SymbolIndex, SymbolKind, elf};
use serde::Deserialize;

use crate::program::Program;

pub type Elf<'data> = ElfFile64<'data, LittleEndian>;

/// The first section of an object starts here, and each at a multiple of it.
const SPACING: u64 = 0x1_0000;
/// Bytes of a name of a symbol or a section: the kernel itself takes 512 (KSYM_NAME_LEN).
const LONGEST_NAME: usize = 4096;
/// Padding before functions, which the linked kernel calls a function.
const PADDING_PREFIX: &str = "__pfx_";

/// A relocation of an object.
#[derive(Debug, Clone, Copy)]
pub struct Relocation {
    /// The offset in the section.
    pub offset: u64,
    /// R_X86_64_...
    pub kind: u32,
    pub symbol: Option<SymbolIndex>,
    pub addend: i64,
}

/// A section that is loaded.
pub struct Section<'data> {
    pub name: &'data str,
    pub base: u64,
    /// Empty for one without content, such as .bss.
    pub bytes: &'data [u8],
    pub size: u64,
    pub is_code: bool,
    /// It is written to as well: a linker puts the code that starts another kernel (kexec) into .data, and marks all of it.
    pub has_data: bool,
    /// The relocations in the order of their offsets.
    pub relocations: Vec<Relocation>,
}

/// Code from one symbol to the next one: every byte of a section belongs to one function. Among data, only what a symbol
/// with a size names is one.
#[derive(Debug, Clone)]
pub struct Function<'data> {
    pub name: &'data str,
    /// Position in `Binary::sections`.
    pub section: usize,
    pub start: u64,
    pub end: u64,
    pub is_global: bool,
}

/// A function as a table of symbols has it: its address, whether others can call it by name, its name.
#[derive(Debug, Clone, Deserialize)]
pub struct Named(pub u64, pub bool, pub String);

/// Where a function begins. At one address the first in this order counts: one that is a function, one that others can
/// call. After the address come `is no function`, `is local`, the section's position, the name, and the size if known.
type Start<'data> = (u64, bool, bool, usize, &'data str, u64);

/// Where a branch goes, or what a relocation names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'data> {
    Address(u64),
    /// A symbol that this file doesn't define.
    Undefined(&'data str),
    Unknown,
}

pub struct Binary<'data> {
    pub elf: Elf<'data>,
    /// Compiled, not linked.
    pub is_object: bool,
    pub sections: Vec<Section<'data>>,
    /// The functions in the order of their addresses; empty if `has_functions` is false.
    pub functions: Vec<Function<'data>>,
    /// The number of functions that aren't among them, since they are a C library's.
    pub left_out: usize,
    /// Where functions begin is known: a linked kernel may have no symbols.
    pub has_functions: bool,
    /// Position in `sections` by index in the file.
    positions: Vec<Option<usize>>,
}

/// How a compressed file begins, the name of its format, and the program that unpacks it.
const COMPRESSED: [(&[u8], &str, &str); 4] = [
    (b"\xfd7zXZ\0", "xz", "xz -dk"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstd -d"),
    (b"\x1f\x8b", "gzip", "gzip -dk"),
    (b"BZh", "bzip2", "bzip2 -dk"),
];
/// The architectures that Linux is built for most often, as people name them.
const ARCHITECTURES: [(u16, &str); 8] = [
    (elf::EM_386, "32-bit x86"),
    (elf::EM_AARCH64, "arm64"),
    (elf::EM_ARM, "32-bit ARM"),
    (elf::EM_RISCV, "RISC-V"),
    (elf::EM_PPC64, "64-bit POWER"),
    (elf::EM_S390, "s390"),
    (elf::EM_LOONGARCH, "LoongArch"),
    (elf::EM_MIPS, "MIPS"),
];

/// Return why these bytes are no kernel or module for x86-64, if their beginning tells.
fn why_not_x86_64(data: &[u8]) -> Option<String> {
    if let Some((_, format, program)) = COMPRESSED.iter().find(|(magic, ..)| data.starts_with(magic)) {
        return Some(format!("it is compressed ({format}): unpack it first, with {program}"));
    }
    let header = data.get(..20).filter(|header| header.starts_with(&elf::ELFMAG))?;
    let is_big = header[5] == elf::ELFDATA2MSB;
    let machine = [header[18], header[19]];
    let machine = if is_big { u16::from_be_bytes(machine) } else { u16::from_le_bytes(machine) };
    if machine == elf::EM_X86_64 {
        return None;
    }
    let known = ARCHITECTURES.iter().find(|(number, _)| *number == machine);
    Some(match known {
        Some((_, name)) => format!("it is made for {name}, and only x86-64 is known here"),
        None => format!("it isn't made for x86-64 (its ELF machine is {machine})"),
    })
}

impl<'data> Binary<'data> {
    /// Read a file; the error says in one line what is wrong with it.
    ///
    /// `named` are its functions if it is linked and has no symbols of functions.
    pub fn parse(data: &'data [u8], named: &'data [Named]) -> Result<Self, String> {
        if let Some(why) = why_not_x86_64(data) {
            return Err(why);
        }
        let elf = Elf::parse(data).map_err(|error| format!("it is not a readable ELF file: {error}"))?;
        let header = elf.elf_header();
        let is_object = header.e_type(LittleEndian) == elf::ET_REL;
        let (sections, positions) = sections(&elf, is_object, data.len() as u64)?;
        require_short_names(&elf)?;
        let functions = Vec::new();
        let mut binary = Binary { elf, is_object, sections, functions, left_out: 0, has_functions: true, positions };
        let mut starts = binary.symbols_of_functions();
        if starts.is_empty() && !is_object {
            starts = binary.starts_of(named);
            binary.has_functions = !starts.is_empty();
        }
        if binary.has_functions {
            binary.functions = binary.functions_from(starts);
            binary.leave_out_library();
        }
        Ok(binary)
    }

    /// Return the code of a function.
    pub fn code(&self, function: &Function) -> &'data [u8] {
        let section = &self.sections[function.section];
        &section.bytes[(function.start - section.base) as usize..(function.end - section.base) as usize]
    }

    pub fn section_at(&self, address: u64) -> Option<&Section<'data>> {
        let after = self.sections.partition_point(|section| section.base <= address);
        self.sections[..after].last().filter(|section| address - section.base < section.size)
    }

    pub fn section_named(&self, name: &str) -> Option<&Section<'data>> {
        self.sections.iter().find(|section| section.name == name)
    }

    pub fn function_at(&self, address: u64) -> Option<usize> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let place = after.checked_sub(1)?;
        (address < self.functions[place].end).then_some(place)
    }

    /// Return the relocation whose field is in these bytes of a section.
    pub fn relocation_in(&self, section: usize, start: u64, length: u64) -> Option<&Relocation> {
        let section = &self.sections[section];
        let offset = start - section.base;
        let place = section.relocations.partition_point(|relocation| relocation.offset < offset);
        section.relocations.get(place).filter(|relocation| relocation.offset < offset.saturating_add(length))
    }

    /// Return what a relocation names, without its addend.
    pub fn named_by(&self, relocation: &Relocation) -> Target<'data> {
        let Some(symbol) = relocation.symbol.and_then(|index| self.elf.symbol_by_index(index).ok()) else {
            return Target::Unknown;
        };
        if symbol.is_undefined() {
            return symbol.name().map_or(Target::Unknown, Target::Undefined);
        }
        match symbol.section_index().and_then(|index| self.positions.get(index.0).copied().flatten()) {
            Some(place) => Target::Address(self.sections[place].base.wrapping_add(symbol.address())),
            None => Target::Unknown,
        }
    }

    /// Return the offset that a relocation results in where its symbol is in a section that isn't loaded.
    pub fn offset_named_by(&self, relocation: &Relocation) -> Option<u64> {
        let symbol = self.elf.symbol_by_index(relocation.symbol?).ok()?;
        (!symbol.is_undefined()).then(|| symbol.address().wrapping_add_signed(relocation.addend))
    }

    /// Return where a relocation points: its symbol and addend, and `more`.
    pub fn pointed_at(&self, relocation: &Relocation, more: i64) -> Target<'data> {
        match self.named_by(relocation) {
            Target::Address(symbol) => {
                Target::Address(symbol.wrapping_add_signed(relocation.addend.wrapping_add(more)))
            }
            other => other,
        }
    }

    /// Return the address to show: for an object, the address in the section.
    pub fn shown_address(&self, address: u64) -> u64 {
        match self.section_at(address) {
            Some(section) if self.is_object => address - section.base,
            _ => address,
        }
    }

    /// Return the position of a section, by its index in the file.
    pub fn place(&self, index: usize) -> Option<usize> {
        self.positions.get(index).copied().flatten()
    }

    /// Remove the functions of a C library that is linked into the kernel.
    fn leave_out_library(&mut self) {
        if let Some(program) = Program::of(&self.elf) {
            let before = self.functions.len();
            self.functions.retain(|function| program.is_kernel(function.start));
            self.left_out = before - self.functions.len();
        }
    }

    fn symbols_of_functions(&self) -> Vec<Start<'data>> {
        let mut starts = Vec::new();
        for symbol in self.elf.symbols() {
            let is_function = symbol.kind() == SymbolKind::Text;
            let is_label = symbol.kind() == SymbolKind::Unknown && (symbol.is_global() || symbol.size() > 0);
            let place = symbol.section_index().and_then(|index| self.place(index.0));
            let (Some(place), Ok(name), true) = (place, symbol.name(), is_function || is_label) else {
                continue;
            };
            let section = &self.sections[place];
            let offset = symbol.address().wrapping_sub(if self.is_object { 0 } else { section.base });
            let is_data = section.has_data && symbol.size() == 0;
            if section.is_code && !is_data && offset < section.bytes.len() as u64 && !name.starts_with(PADDING_PREFIX) {
                starts.push((section.base + offset, !is_function, !symbol.is_global(), place, name, symbol.size()));
            }
        }
        starts
    }

    fn starts_of(&self, named: &'data [Named]) -> Vec<Start<'data>> {
        let start = |Named(address, is_global, name): &'data Named| {
            let section = self.section_at(*address)?;
            let place = self.sections.partition_point(|other| other.base <= *address) - 1;
            let is_code = section.is_code && !section.has_data && address - section.base < section.bytes.len() as u64;
            (is_code && !name.starts_with(PADDING_PREFIX)).then_some((
                *address,
                false,
                !is_global,
                place,
                name.as_str(),
                0,
            ))
        };
        named.iter().filter_map(start).collect()
    }

    fn functions_from(&self, mut starts: Vec<Start<'data>>) -> Vec<Function<'data>> {
        for (place, section) in self.sections.iter().enumerate() {
            if section.is_code && !section.has_data && !section.bytes.is_empty() {
                starts.push((section.base, true, true, place, section.name, 0));
            }
        }
        starts.sort_unstable();
        starts.dedup_by_key(|start| start.0);
        let nexts = starts.iter().skip(1).map(|start| start.0).chain([u64::MAX]);
        let function = |(start, next): (&Start<'data>, u64)| {
            let section = &self.sections[start.3];
            let end = next.min(section.base + section.bytes.len() as u64);
            let end = if section.has_data { end.min(start.0.saturating_add(start.5)) } else { end };
            Function { name: start.4, section: start.3, start: start.0, end, is_global: !start.2 }
        };
        starts.iter().zip(nexts).map(function).collect()
    }
}

/// Refuse long names. Names come from the file once for each finding, so that a long one would fill the memory.
fn require_short_names(elf: &Elf) -> Result<(), String> {
    let sections = elf.sections().map(|section| section.name_bytes().map_or(0, <[u8]>::len));
    let symbols = elf.symbols().map(|symbol| symbol.name_bytes().map_or(0, <[u8]>::len));
    match sections.chain(symbols).find(|length| *length > LONGEST_NAME) {
        Some(length) => Err(format!("it has a name of {length} bytes")),
        None => Ok(()),
    }
}

/// Return the loaded sections in the order of their addresses, and where the file's sections are among them.
fn sections<'data>(
    elf: &Elf<'data>,
    is_object: bool,
    file_size: u64,
) -> Result<(Vec<Section<'data>>, Vec<Option<usize>>), String> {
    let (mut sections, mut next) = (Vec::new(), SPACING);
    // Sound sections don't overlap. In a file where they do, a small one could stand for any amount of work.
    let mut left = file_size;
    for section in elf.sections() {
        let SectionFlags::Elf { sh_flags } = section.flags() else {
            continue;
        };
        let is_loaded = sh_flags & u64::from(elf::SHF_ALLOC) != 0;
        let is_per_cpu = !is_object && section.address() == 0;
        if !is_loaded || is_per_cpu {
            continue;
        }
        let name = section.name().map_err(|error| format!("a section's name can't be read: {error}"))?;
        let bytes = match section.kind() {
            SectionKind::UninitializedData => &[],
            _ => section.data().map_err(|error| format!("its section {name} can't be read: {error}"))?,
        };
        left = left.checked_sub(bytes.len() as u64).ok_or("its sections overlap")?;
        let mut relocations = Vec::new();
        if is_object {
            for (offset, relocation) in section.relocations() {
                left =
                    left.checked_sub(size_of::<elf::Rela64<LittleEndian>>() as u64).ok_or("its relocations overlap")?;
                let (RelocationFlags::Elf { r_type: kind }, RelocationTarget::Symbol(symbol)) =
                    (relocation.flags(), relocation.target())
                else {
                    continue;
                };
                relocations.push(Relocation { offset, kind, symbol: Some(symbol), addend: relocation.addend() });
            }
            relocations.sort_by_key(|relocation| relocation.offset);
        }
        let size = section.size().max(bytes.len() as u64);
        let base = if is_object { next } else { section.address() };
        let end = base.checked_add(size).and_then(|end| end.checked_next_multiple_of(SPACING));
        next = end.filter(|end| *end < 1 << 62 || !is_object).ok_or(format!("its section {name} has no end"))?
            + SPACING * u64::from(is_object);
        let is_code = sh_flags & u64::from(elf::SHF_EXECINSTR) != 0;
        let has_data = sh_flags & u64::from(elf::SHF_WRITE) != 0;
        sections.push((section.index().0, Section { name, base, bytes, size, is_code, has_data, relocations }));
    }
    sections.sort_by_key(|(_, section)| section.base);
    let mut positions = vec![None; sections.iter().map(|(index, _)| index + 1).max().unwrap_or(0)];
    for (position, (index, _)) in sections.iter().enumerate() {
        positions[*index] = Some(position);
    }
    Ok((sections.into_iter().map(|(_, section)| section).collect(), positions))
}
