//! Line tables: which line of which source an address was compiled from.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use addr2line::gimli::{self, EndianSlice, LittleEndian, Relocate, RelocateReader, SectionId};
use object::{Object, ObjectSection, RelocationFlags, RelocationTarget, elf};

use crate::binary::{Binary, Relocation, Target};

type Bytes<'data> = EndianSlice<'data, LittleEndian>;
type Reader<'data> = RelocateReader<Bytes<'data>, Fields>;

/// What relocations make of the fields of one section, by offset.
#[derive(Debug, Clone, Default)]
struct Fields(std::rc::Rc<BTreeMap<usize, u64>>);

impl Relocate<usize> for Fields {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        Ok(self.0.get(&offset).copied().unwrap_or(value))
    }

    fn relocate_offset(&self, offset: usize, value: usize) -> gimli::Result<usize> {
        match self.0.get(&offset) {
            None => Ok(value),
            Some(relocated) => usize::try_from(*relocated).map_err(|_| gimli::Error::UnsupportedOffset),
        }
    }
}

/// The line tables of a binary, read when the first address is asked for.
pub struct Lines<'a, 'data> {
    binary: &'a Binary<'data>,
    /// None without line tables, or with ones that can't be read: a finding then has no line.
    context: OnceCell<Option<addr2line::Context<Reader<'data>>>>,
}

impl<'a, 'data> Lines<'a, 'data> {
    pub fn of(binary: &'a Binary<'data>) -> Self {
        Lines { binary, context: OnceCell::new() }
    }

    fn context(&self) -> Option<&addr2line::Context<Reader<'data>>> {
        self.context.get_or_init(|| Self::read(self.binary)).as_ref()
    }

    fn read(binary: &Binary<'data>) -> Option<addr2line::Context<Reader<'data>>> {
        let section = |id: SectionId| -> Result<Reader<'data>, gimli::Error> {
            let elf_section = binary.elf.section_by_name(id.name());
            // A compressed section is left out: kernel builds have none unless CONFIG_DEBUG_INFO_COMPRESSED_* is set.
            let bytes = match elf_section.as_ref().map(|section| section.uncompressed_data()) {
                Some(Ok(Cow::Borrowed(bytes))) => bytes,
                _ => &[],
            };
            let fields = match elf_section {
                Some(section) if binary.is_object => fields(binary, &section, bytes.len()),
                _ => Fields::default(),
            };
            Ok(RelocateReader::new(EndianSlice::new(bytes, LittleEndian), fields))
        };
        let dwarf = gimli::Dwarf::load(section).ok()?;
        addr2line::Context::from_dwarf(dwarf).ok()
    }

    /// Find the source, relative to the root of the kernel's source if that can be determined, and the line.
    pub fn find(&self, address: u64) -> Option<(String, u64)> {
        let context = self.context()?;
        let location = context.find_location(address).ok()??;
        let unit = context.find_dwarf_and_unit(address).skip_all_loads();
        let text = |reader: Reader| reader.inner().to_string_lossy().into_owned();
        let (directory, name) = match unit {
            Some(unit) => (unit.comp_dir.clone().map(text), unit.name.clone().map(text)),
            None => (None, None),
        };
        let source = within_source(location.file?, &directory.unwrap_or_default(), &name.unwrap_or_default());
        Some((source, u64::from(location.line?)))
    }
}

/// Return what a section's relocations put into its fields; a debugging section refers to code and to other ones.
fn fields<'data>(
    binary: &Binary<'data>,
    section: &object::read::elf::ElfSection64<'data, '_, object::LittleEndian>,
    length: usize,
) -> Fields {
    let mut fields = BTreeMap::new();
    // Each relocation has a field of its own: more of them than bytes are nothing that an assembler makes.
    for (offset, relocation) in section.relocations().take(length) {
        let (RelocationFlags::Elf { r_type: kind }, RelocationTarget::Symbol(symbol)) =
            (relocation.flags(), relocation.target())
        else {
            continue;
        };
        if kind != elf::R_X86_64_64 && kind != elf::R_X86_64_32 {
            continue;
        }
        let relocation = Relocation { offset, kind, symbol: Some(symbol), addend: relocation.addend() };
        let value = match binary.pointed_at(&relocation, 0) {
            Target::Address(address) => address,
            // A section that isn't loaded, such as .debug_str.
            _ => binary.offset_named_by(&relocation).unwrap_or(0),
        };
        fields.insert(offset as usize, value);
    }
    Fields(std::rc::Rc::new(fields))
}

/// Return a path as line tables have it, relative to the root of the source; a made file relative to the object
/// directory.
///
/// Kbuild compiles in the object directory. With `make O=` beside or below the source its names start with `../`,
/// and that is the root; without `O=` both are one; else the names are absolute and stay so.
fn within_source(path: &str, directory: &str, unit: &str) -> String {
    let path = plain(&if path.starts_with('/') { path.to_owned() } else { format!("{directory}/{path}") });
    let ups = unit.split('/').take_while(|part| *part == "..").count();
    let root = plain(&format!("{directory}{}", "/..".repeat(ups)));
    let below = |root: &str| path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')).map(str::to_owned);
    let known = |root: &str| {
        if root.is_empty() || root == "/" { None } else { below(root) }
    };
    known(&plain(directory)).or_else(|| known(&root)).unwrap_or(path)
}

/// Return the path without `.`, `..` and double slashes.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            _ => parts.push(part),
        }
    }
    format!("{}{}", if path.starts_with('/') { "/" } else { "" }, parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_relative_to_the_root_of_the_tree() {
        let source = |path, directory, unit| within_source(path, directory, unit);
        assert_eq!(source("/b/o/../kernel/fork.c", "/b/o", "../kernel/fork.c"), "kernel/fork.c");
        assert_eq!(source("/b/o/../include/linux/mm.h", "/b/o", "../kernel/fork.c"), "include/linux/mm.h");
        assert_eq!(source("/b/o/include/generated/x.h", "/b/o", "../kernel/fork.c"), "include/generated/x.h");
        assert_eq!(source("/linux/kernel/fork.c", "/linux", "kernel/fork.c"), "kernel/fork.c");
        assert_eq!(source("/src/kernel/fork.c", "/made", "/src/kernel/fork.c"), "/src/kernel/fork.c");
        assert_eq!(source("fork.c", "", ""), "/fork.c");
        assert_eq!(source("/../../x.c", "/", "x.c"), "/x.c");
    }
}
