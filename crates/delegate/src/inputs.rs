//! What is linked: objects, archives of them, and thin archives, which only name them.

use std::fs;
use std::path::Path;

use object::read::archive::ArchiveFile;
use object::read::elf::{ElfFile64, FileHeader};
use object::{LittleEndian, Object, ObjectSection, SectionFlags, archive, elf};

/// What a file turned out to be.
#[derive(Debug, PartialEq)]
pub enum Kind {
    Object,
    Archive,
    /// Nothing that holds code: a script, the value of an option, or no file at all.
    Other,
}

/// A section with code: its index in the object, its name, its alignment and its size in bytes.
pub struct Code<'data> {
    pub index: usize,
    pub name: &'data str,
    pub align: u64,
    pub size: u64,
}

pub type Elf<'data> = ElfFile64<'data, LittleEndian>;

type Visit<'a> = dyn FnMut(&Path, &[u8]) -> Result<(), String> + 'a;

/// Thin archives that name each other so deep are not a kernel's; one may even name itself.
const DEEPEST: usize = 16;

/// Call `visit` with every object of a file, in order, and with where it was found.
pub fn each_object(path: &Path, visit: &mut Visit) -> Result<Kind, String> {
    each_object_within(path, 0, visit)
}

fn each_object_within(path: &Path, archives: usize, visit: &mut Visit) -> Result<Kind, String> {
    if archives > DEEPEST {
        return Err(format!("{} lies in archives in archives, more than {DEEPEST} of them", path.display()));
    }
    if !path.is_file() {
        return Ok(Kind::Other);
    }
    let data = fs::read(path).map_err(|error| format!("can't read {}: {error}", path.display()))?;
    if data.starts_with(&elf::ELFMAG) {
        visit(path, &data)?;
        return Ok(Kind::Object);
    }
    if !(data.starts_with(&archive::MAGIC) || data.starts_with(&archive::THIN_MAGIC)) {
        return Ok(Kind::Other);
    }
    let unfit = |error: object::Error| format!("can't read the archive {}: {error}", path.display());
    let members = ArchiveFile::parse(&*data).map_err(unfit)?;
    for member in members.members() {
        let member = member.map_err(unfit)?;
        let name = String::from_utf8_lossy(member.name()).into_owned();
        let beside = path.parent().unwrap_or(Path::new("")).join(&name);
        if !member.is_thin() {
            visit(Path::new(&name), member.data(&*data).map_err(unfit)?)?;
        } else if each_object_within(&beside, archives + 1, visit)? == Kind::Other {
            return Err(format!("{} names {}, which is not an object", path.display(), beside.display()));
        }
    }
    Ok(Kind::Archive)
}

/// Parse an object; anything but 64-bit little-endian ELF is refused, and so is the bitcode of link-time optimisation.
pub fn parse<'data>(path: &Path, data: &'data [u8]) -> Result<Elf<'data>, String> {
    let object = Elf::parse(data).map_err(|error| format!("can't read the object {}: {error}", path.display()))?;
    if object.elf_header().e_type(LittleEndian) != elf::ET_REL {
        return Err(format!("{} is not a relocatable object", path.display()));
    }
    Ok(object)
}

/// Return the sections with code that the linker script leaves to the order: those that `takes` accepts.
pub fn code<'data>(object: &Elf<'data>, takes: &dyn Fn(&str) -> bool) -> Vec<Code<'data>> {
    object
        .sections()
        .filter(|section| {
            matches!(section.flags(), SectionFlags::Elf { sh_flags } if sh_flags & u64::from(elf::SHF_EXECINSTR) != 0)
        })
        .filter_map(|section| {
            let name = std::str::from_utf8(section.name_bytes().ok()?).ok()?;
            takes(name).then(|| Code { index: section.index().0, name, align: section.align(), size: section.size() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_is_none_of_its_business() {
        let path = std::env::temp_dir().join(format!("lkd-inputs-{}", std::process::id()));
        fs::write(&path, "INPUT(a.o)").unwrap();
        let mut visit = |_: &Path, _: &[u8]| panic!("there is nothing to see");
        assert_eq!(each_object(&path, &mut visit), Ok(Kind::Other));
        assert_eq!(each_object(Path::new("/no/such/file"), &mut visit), Ok(Kind::Other));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_damaged_object_is_refused_by_name() {
        let message = parse(Path::new("fs/open.o"), b"\x7fELF, but cut off").err().unwrap();
        assert!(message.starts_with("can't read the object fs/open.o"), "{message}");
    }
}
