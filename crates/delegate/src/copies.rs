//! Copies of objects whose function sections are named by their rank, for a linker that is slow with long scripts.
//!
//! ld.lld compares every pattern with every section: thirteen thousand patterns cost it 16 s. It sorts by name in no
//! time. GNU ld looks patterns up in a table, and needs no copies.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use object::LittleEndian;
use object::read::elf::FileHeader;

use crate::inputs::{Elf, Kind, code, each_object, parse};

/// A section in a copy: the prefix of its name, the rank by which it is sorted, and what it is aligned to at least.
pub struct Ranked {
    pub prefix: &'static str,
    pub rank: u64,
    pub align: Option<u32>,
}

/// From the name of a section with code to what it becomes; `None`: it stays.
pub type Rank<'a> = dyn Fn(&str) -> Option<Ranked> + 'a;

/// Copies under way: where they go, and what has been done.
pub struct Copies<'a> {
    directory: &'a Path,
    rank: &'a Rank<'a>,
    written: usize,
}

impl<'a> Copies<'a> {
    /// Start with an empty directory.
    pub fn new(directory: &'a Path, rank: &'a Rank) -> Result<Self, String> {
        if directory.exists() {
            fs::remove_dir_all(directory).map_err(|error| unwritable(directory, &error))?;
        }
        fs::create_dir(directory).map_err(|error| unwritable(directory, &error))?;
        Ok(Self { directory, rank, written: 0 })
    }

    /// Return the words of the call with copies in place of objects and archives. Members of an archive that is linked
    /// only where it is needed stay between --start-lib and --end-lib, which ld.lld doesn't want inside a group; it
    /// resolves archives in any order and needs no groups.
    pub fn replaced(
        &mut self,
        arguments: &[OsString],
        is_input: &dyn Fn(&Path) -> bool,
    ) -> Result<Vec<OsString>, String> {
        let mut changed = Vec::new();
        let mut whole = false;
        for word in arguments {
            match word.to_str() {
                Some("--whole-archive") => whole = true,
                Some("--no-whole-archive") => whole = false,
                Some("--start-group" | "--end-group" | "-(" | "-)") => continue,
                _ => {}
            }
            let path = Path::new(word);
            if !is_input(path) {
                changed.push(word.clone());
                continue;
            }
            let mut objects: Vec<OsString> = Vec::new();
            let kind = each_object(path, &mut |path, data| {
                objects.push(self.copy(path, data)?.into());
                Ok(())
            })?;
            match kind {
                Kind::Other => changed.push(word.clone()),
                Kind::Archive if !whole => {
                    changed.push("--start-lib".into());
                    changed.append(&mut objects);
                    changed.push("--end-lib".into());
                }
                Kind::Archive | Kind::Object => changed.append(&mut objects),
            }
        }
        Ok(changed)
    }

    /// Write a copy of an object and return its path; an object of which no section is ranked is left where it is.
    fn copy(&mut self, path: &Path, data: &[u8]) -> Result<PathBuf, String> {
        let (changed, sections) = renamed(path, data, self.rank)?;
        if sections == 0 && path.is_file() {
            return Ok(path.to_owned());
        }
        let stem = path.file_name().unwrap_or_default().to_string_lossy();
        let copy = self.directory.join(format!("{}-{stem}", self.written));
        fs::write(&copy, changed).map_err(|error| unwritable(&copy, &error))?;
        self.written += 1;
        Ok(copy)
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> String {
    format!("can't write {}: {error}", path.display())
}

/// Rename and align the ranked sections of an object, and return it with their number. The names go into a new table of
/// names at the end; code, symbols and relocations stay where they are, byte for byte.
fn renamed(path: &Path, data: &[u8], rank: &Rank) -> Result<(Vec<u8>, usize), String> {
    let object = parse(path, data)?;
    let sections = code(&object, &|name| rank(name).is_some());
    let (names, mut strings) = name_table(&object, data).map_err(|why| format!("{}: {why}", path.display()))?;
    let headers = object.elf_header().e_shoff.get(LittleEndian) as usize;
    let mut changed = data.to_vec();
    let mut put = |index: usize, at: usize, bytes: &[u8]| {
        let start = headers + index * 64 + at;
        changed[start..start + bytes.len()].copy_from_slice(bytes);
    };
    for (section, ranked) in sections.iter().filter_map(|section| Some((section, rank(section.name)?))) {
        let Ranked { prefix, rank, align } = ranked;
        let offset = u32::try_from(strings.len()).map_err(|_| "its names take more than 4 GB".to_owned())?;
        let function = section.name.strip_prefix(".text.").unwrap_or(section.name);
        strings.extend(format!("{prefix}{rank:016x}.{function}\0").bytes());
        put(section.index, 0, &offset.to_le_bytes()); // sh_name
        put(section.index, 48, &section.align.max(u64::from(align.unwrap_or(1))).to_le_bytes()); // sh_addralign
    }
    put(names, 24, &(data.len() as u64).to_le_bytes()); // sh_offset
    put(names, 32, &(strings.len() as u64).to_le_bytes()); // sh_size
    changed.append(&mut strings);
    Ok((changed, sections.len()))
}

/// Return the index and the content of the table that holds the names of sections.
fn name_table(object: &Elf, data: &[u8]) -> Result<(usize, Vec<u8>), String> {
    use object::read::elf::SectionHeader;
    let read = || -> object::Result<(usize, Vec<u8>)> {
        let header = object.elf_header();
        let index = header.shstrndx(LittleEndian, data)? as usize;
        let section = object.elf_section_table().section(object::SectionIndex(index))?;
        Ok((index, section.data(LittleEndian, data)?.to_vec()))
    };
    read().map_err(|error| format!("can't read the names of its sections: {error}"))
}

#[cfg(test)]
pub mod tests {
    use object::write::Object as Writer;
    use object::{Architecture, BinaryFormat, Endianness, Object, ObjectSection, SectionKind};

    use super::*;
    use crate::order::{place, shuffled};

    /// Return an object with one section of code for each name, of as many bytes 0xc3 as the name is long.
    pub fn object(names: &[&str]) -> Vec<u8> {
        let mut writer = Writer::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        for name in names {
            let section = writer.add_section(vec![], name.as_bytes().to_vec(), SectionKind::Text);
            writer.append_section_data(section, &vec![0xc3; name.len()], 16);
        }
        writer.write().unwrap()
    }

    pub fn by_seed(name: &str, seed: u64) -> Ranked {
        let (rank, align) = place(name, seed);
        Ranked { prefix: ".text.lkd.", rank, align }
    }

    #[test]
    fn sections_get_the_names_that_sort_them_and_all_else_stays() {
        let names = [".text", ".text.a", ".text.b", ".text.c", ".text.d", ".text.unlikely.a"];
        let data = object(&names);
        let takes = |name: &str| name.starts_with(".text.") && name.len() == ".text.a".len();
        let rank = |name: &str| takes(name).then(|| by_seed(name, 9));
        let (changed, count) = renamed(Path::new("x.o"), &data, &rank).unwrap();
        assert_eq!(count, 4);
        let (before, after) = (Elf::<'_>::parse(&*data).unwrap(), Elf::<'_>::parse(&*changed).unwrap());
        let mut sorted = Vec::new();
        for (old, new) in before.sections().zip(after.sections()) {
            let (name, renamed) = (old.name().unwrap(), new.name().unwrap());
            assert!(new.data().unwrap().starts_with(old.data().unwrap()), "{name}");
            assert!(name == ".shstrtab" || new.size() == old.size(), "{name}");
            if takes(name) {
                assert_eq!(new.align(), u64::from(place(name, 9).1.unwrap_or(16)));
                sorted.push((renamed.to_owned(), name.to_owned()));
            } else {
                assert_eq!((name, old.align()), (renamed, new.align()));
            }
        }
        sorted.sort();
        let names: Vec<String> = names.iter().filter(|name| takes(name)).map(|name| (*name).to_owned()).collect();
        let expected: Vec<&str> = shuffled(&names, 9).iter().map(|placed| placed.name).collect();
        assert_eq!(sorted.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn archives_become_their_members_and_keep_what_they_mean() {
        let directory = std::env::temp_dir().join(format!("lkd-copies-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (plain, functions) = (directory.join("plain.o"), directory.join("functions.o"));
        fs::write(&plain, object(&[".text"])).unwrap();
        fs::write(&functions, object(&[".text.a"])).unwrap();
        let archive = directory.join("thin.a");
        fs::write(&archive, thin(&["plain.o/", "functions.o/"])).unwrap();
        let rank = |name: &str| (name == ".text.a").then(|| by_seed(name, 1));
        let made = directory.join("made");
        let mut copies = Copies::new(&made, &rank).unwrap();
        let thin = archive.to_str().unwrap();
        let words = ["--whole-archive", thin, "--no-whole-archive", "--start-group", thin, "--end-group", "-o", "v"];
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let replaced = copies.replaced(&words, &|path| path.starts_with(&directory)).unwrap();
        let copy = |number: usize| made.join(format!("{number}-functions.o")).into_os_string();
        let plain = plain.into_os_string();
        let expected: [OsString; 10] = [
            "--whole-archive".into(),
            plain.clone(),
            copy(0),
            "--no-whole-archive".into(),
            "--start-lib".into(),
            plain,
            copy(1),
            "--end-lib".into(),
            "-o".into(),
            "v".into(),
        ];
        assert_eq!(replaced, expected);
        fs::remove_dir_all(&directory).unwrap();
    }

    /// Return a thin archive: a table of names, then a header for each member, and no data.
    fn thin(names: &[&str]) -> Vec<u8> {
        let table: String = names.iter().map(|name| format!("{name}\n")).collect();
        let header = |name: &str, size: usize| format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644);
        let mut made = format!("!<thin>\n{}{table}", header("//", table.len()));
        if table.len() % 2 == 1 {
            made.push('\n');
        }
        for name in names {
            made += &header(&format!("/{}", table.find(name).unwrap()), 0);
        }
        made.into_bytes()
    }
}
