//! A kernel for ARCH=um is a program: code that starts programs and the C library are linked into it.
//!
//! The linker puts the code of both where the kernel's is, without a mark. But it writes unwind tables (.eh_frame) in
//! the order in which it links: the object with the entry point, the kernel, the library. So a function whose table
//! is not behind the entry point's, or not before that of the library's first object, isn't the kernel's. That object
//! has `__libc_start_main`, which code that starts programs calls. A function without a table is the kernel's.

use std::ops::Range;

use addr2line::gimli::{self, BaseAddresses, CieOrFde, EhFrame, UnwindSection};
use object::read::elf::{ElfFile64, FileHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SymbolKind};
use rustc_hash::FxHashMap;

type Elf<'data> = ElfFile64<'data, LittleEndian>;

const MAIN: &str = "__libc_start_main";

/// The code of a program, which distinguishes the kernel's from the rest.
pub struct Program {
    /// Code that has a table, and the table's position in the order of linking; in the order of addresses.
    tables: Vec<(Range<u64>, usize)>,
    /// The positions of the kernel's tables.
    kernel: Range<usize>,
}

impl Program {
    /// Return None for what isn't a program with a C library, or where the kernel's code can't be determined.
    pub fn of(elf: &Elf) -> Option<Program> {
        let main = elf.symbols().find(|symbol| symbol.is_definition() && symbol.name() == Ok(MAIN))?.address();
        let linked = linked_code(elf);
        let position = |address| linked.iter().position(|code| code.start == address);
        let (entry, mut library) = (position(elf.elf_header().e_entry(LittleEndian)), position(main)?);
        // Static functions of the same object come first.
        let files = local_functions(elf);
        let file_before = |position: usize| files.get(&linked[position.checked_sub(1)?].start);
        let object = file_before(library);
        while object.is_some() && file_before(library) == object {
            library -= 1;
        }
        let mut tables: Vec<_> = linked.into_iter().zip(0..).collect();
        tables.sort_unstable_by_key(|(code, _): &(Range<u64>, usize)| code.start);
        Some(Program { tables, kernel: entry.map_or(0, |entry| entry + 1)..library })
    }

    /// Return whether code at an address is the kernel's.
    pub fn is_kernel(&self, address: u64) -> bool {
        let after = self.tables.partition_point(|(code, _)| code.start <= address);
        let table = self.tables[..after].last().filter(|(code, _)| address < code.end);
        table.is_none_or(|(_, position)| self.kernel.contains(position))
    }
}

/// Return the code that each table of .eh_frame is about, in the section's order, up to what can't be read.
fn linked_code(elf: &Elf) -> Vec<Range<u64>> {
    let Some(section) = elf.section_by_name(".eh_frame") else { return Vec::new() };
    let frames = EhFrame::new(section.data().unwrap_or_default(), gimli::LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(section.address());
    let (mut entries, mut shared, mut code) = (frames.entries(&bases), FxHashMap::default(), Vec::new());
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        // Thousands of tables share one common part, which may be long.
        let table = partial.parse(|frames, bases, offset| {
            let read = || frames.cie_from_offset(bases, offset);
            shared.entry(offset.0).or_insert_with(read).clone()
        });
        if let Ok(table) = table {
            code.push(table.initial_address()..table.initial_address().saturating_add(table.len()));
        }
    }
    code
}

/// Return the number of the compiled file of each static function, by address: a symbol of a file comes before its
/// static functions.
fn local_functions(elf: &Elf) -> FxHashMap<u64, usize> {
    let (mut file, mut functions) = (0, FxHashMap::default());
    for symbol in elf.symbols() {
        file += usize::from(symbol.kind() == SymbolKind::File);
        if symbol.is_local() && symbol.kind() == SymbolKind::Text {
            functions.insert(symbol.address(), file);
        }
    }
    functions
}
