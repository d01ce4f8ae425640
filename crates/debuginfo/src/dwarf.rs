//! Debug information of a linked file.

use std::borrow::Cow;

use gimli::{AttributeValue, DebuggingInformationEntry, DwarfSections, EndianSlice, RunTimeEndian, constants};
use object::{Object, ObjectKind};

use crate::file::Binary;
use crate::limits::{Steps, name};

pub type Bytes<'data> = EndianSlice<'data, RunTimeEndian>;
pub type Dwarf<'data> = gimli::Dwarf<Bytes<'data>>;
pub type Unit<'data> = gimli::Unit<Bytes<'data>>;
pub type Entry<'data> = DebuggingInformationEntry<Bytes<'data>>;
pub type Value<'data> = AttributeValue<Bytes<'data>>;

/// Return the sections of debug information. The addresses in an object aren't yet those of any code.
pub fn sections<'data>(binary: &Binary<'data>) -> Result<DwarfSections<Cow<'data, [u8]>>, String> {
    if binary.elf.kind() == ObjectKind::Relocatable {
        return Err("it is an object file, and isn't linked yet".into());
    }
    DwarfSections::load(|section| binary.content(section.name()))
}

pub fn dwarf<'a>(sections: &'a DwarfSections<Cow<[u8]>>, binary: &Binary) -> Dwarf<'a> {
    let endian = if binary.elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    sections.borrow(|section| EndianSlice::new(section, endian))
}

/// Return the number of bytes of an address.
pub fn address_size(binary: &Binary) -> u8 {
    if binary.elf.is_64() { 8 } else { 4 }
}

/// Describe what is wrong with debug information, in one sentence.
pub fn said(error: gimli::Error) -> String {
    format!("its debug information can't be read: {error}")
}

pub fn text(bytes: Bytes) -> Result<String, String> {
    name(bytes.slice())
}

/// Return the address ranges of the code that an entry describes, each from its start to before its end.
pub fn ranges(dwarf: &Dwarf, unit: &Unit, entry: &Entry, steps: &mut Steps) -> Result<Vec<(u64, u64)>, String> {
    let (mut low, mut high, mut size) = (None, None, None);
    for attribute in entry.attrs() {
        match attribute.name() {
            constants::DW_AT_low_pc => low = dwarf.attr_address(unit, attribute.value()).map_err(said)?,
            constants::DW_AT_high_pc => match attribute.value() {
                AttributeValue::Udata(bytes) => size = Some(bytes),
                value => high = dwarf.attr_address(unit, value).map_err(said)?,
            },
            constants::DW_AT_ranges => {
                let mut list = Vec::new();
                if let Some(mut ranges) = dwarf.attr_ranges(unit, attribute.value()).map_err(said)? {
                    while let Some(range) = ranges.next().map_err(said)? {
                        steps.take(1)?;
                        list.push((range.begin, range.end));
                    }
                }
                return Ok(list);
            }
            _ => {}
        }
    }
    let end = |start: u64| size.map(|size| start.wrapping_add(size)).or(high);
    Ok(low.and_then(|start| Some((start, end(start)?))).filter(|(start, end)| start < end).into_iter().collect())
}

/// Join a path to a directory as POSIX does: an absolute path is not below the directory.
pub fn joined(directory: &str, path: &str) -> String {
    match directory {
        _ if path.starts_with('/') => path.into(),
        "" => path.into(),
        _ if directory.ends_with('/') => format!("{directory}{path}"),
        _ => format!("{directory}/{path}"),
    }
}
