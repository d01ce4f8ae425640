//! What the objects of a link hold, as far as its order is concerned.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

use object::{Object, ObjectSymbol};

use crate::groups::{Group, group_of};
use crate::inputs::{Elf, code, each_object, parse};
use crate::script::Script;

/// What one look at all objects found.
#[derive(Debug, Default)]
pub struct Survey {
    /// Names of sections with code that start with `.text.` and have no place in the script; those of the groups that
    /// the script lacks are not among them.
    pub functions: BTreeSet<String>,
    /// The other names of sections that start with `.text.`.
    pub others: BTreeSet<String>,
    /// Groups that there are sections of, and no place for them in the script.
    pub lacking: BTreeSet<Group>,
    /// For each symbol that was asked for: the sections that define it and may be moved, by name.
    pub sections: BTreeMap<String, BTreeSet<String>>,
    /// Symbols that were asked for and are defined in a section that isn't theirs alone, or has its place.
    pub elsewhere: HashSet<String>,
}

impl Survey {
    /// Look at every object of the files; `wanted` are the symbols that are asked for.
    pub fn of(files: &[PathBuf], script: &Script, wanted: &[String]) -> Result<Self, String> {
        let wanted: HashSet<&str> = wanted.iter().map(String::as_str).collect();
        let mut survey = Self::default();
        for file in files {
            each_object(file, &mut |path, data| {
                survey.add(&parse(path, data)?, script, &wanted);
                Ok(())
            })?;
        }
        Ok(survey.settled())
    }

    /// Leave to the groups what is theirs: a section may be of a group in one object and, without the mark, a
    /// function's in another.
    fn settled(mut self) -> Self {
        let is_grouped = |name: &String| group_of(name).is_some_and(|group| self.lacking.contains(&group));
        let (grouped, functions): (BTreeSet<_>, _) = self.functions.into_iter().partition(is_grouped);
        self.functions = functions;
        self.others.extend(grouped);
        self
    }

    fn add(&mut self, object: &Elf, script: &Script, wanted: &HashSet<&str>) {
        let mut movable = BTreeMap::new();
        let mut marked = BTreeMap::new();
        for section in code(object, &|name| name.starts_with(".text.")) {
            if script.takes(section.name) {
                self.functions.insert(section.name.to_owned());
                match group_of(section.name) {
                    Some(group @ Group { mark: Some(mark), .. }) => drop(marked.insert(section.index, (group, mark))),
                    Some(group) => drop(self.lacking.insert(group)),
                    None => {}
                }
            } else {
                self.others.insert(section.name.to_owned());
            }
            if script.moves(section.name) {
                movable.insert(section.index, section.name);
            }
        }
        if wanted.is_empty() && marked.is_empty() {
            return;
        }
        for symbol in object.symbols() {
            let (Some(section), Ok(name)) = (symbol.section_index(), symbol.name()) else { continue };
            if let Some((group, mark)) = marked.get(&section.0)
                && name.ends_with(mark)
            {
                self.lacking.insert(*group);
            }
            if !wanted.contains(name) {
                continue;
            }
            if let Some(section) = movable.get(&section.0) {
                self.sections.entry(name.to_owned()).or_default().insert((*section).to_owned());
            } else {
                self.elsewhere.insert(name.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use object::write::{Object as Writer, Symbol, SymbolSection};
    use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope};

    use super::*;
    use crate::groups::GROUPS;
    use crate::prefixes::tests::set;

    const SCRIPT: &str = "SECTIONS { .text : { *(.text.hot .text.hot.*) *(.text .text.fixup) } }";

    /// An object with a section of code for each name, and in it one function of the name behind it.
    fn object(sections: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = Writer::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        for (section, function) in sections {
            let section = writer.add_section(vec![], section.as_bytes().to_vec(), SectionKind::Text);
            writer.append_section_data(section, &[0xc3], 16);
            writer.add_symbol(Symbol {
                name: function.as_bytes().to_vec(),
                value: 0,
                size: 1,
                kind: SymbolKind::Text,
                scope: SymbolScope::Compilation,
                weak: false,
                section: SymbolSection::Section(section),
                flags: SymbolFlags::None,
            });
        }
        writer.write().unwrap()
    }

    fn survey(objects: &[&[(&str, &str)]], wanted: &[&str]) -> Survey {
        let mut survey = Survey::default();
        let script = Script::parse(SCRIPT).unwrap();
        for sections in objects {
            let data = object(sections);
            let object = parse(std::path::Path::new("x.o"), &data).unwrap();
            survey.add(&object, &script, &wanted.iter().copied().collect());
        }
        survey.settled()
    }

    #[test]
    fn symbols_are_found_in_every_object_that_has_them() {
        let one: &[_] = &[(".text.f", "f"), (".text.unlikely.f", "f.cold"), (".text", "entry")];
        let two: &[_] = &[(".text.hot.f", "f"), (".init.text", "start"), (".text.g", "g")];
        let survey = survey(&[one, two], &["f", "f.cold", "entry", "start", "gone"]);
        assert_eq!(survey.sections["f"], set(&[".text.f", ".text.hot.f"]));
        assert_eq!(survey.sections["f.cold"], set(&[".text.unlikely.f"]));
        assert_eq!(survey.sections.len(), 2);
        assert_eq!(survey.elsewhere, ["entry".to_owned(), "start".to_owned()].into());
        assert_eq!(survey.functions, set(&[".text.f", ".text.g"]));
        assert_eq!(survey.others, set(&[".text.hot.f", ".text.unlikely.f"]));
        assert_eq!(survey.lacking, [GROUPS[1]].into());
    }

    #[test]
    fn a_function_called_split_is_no_cold_part() {
        let named_so: &[_] = &[(".text.split.part.0", "split.part.0")];
        assert_eq!(survey(&[named_so], &[]).functions, set(&[".text.split.part.0"]));
        let cold: &[_] = &[(".text.split.f", "f.cold")];
        let both = survey(&[named_so, cold], &[]);
        assert_eq!((both.functions, both.lacking), (set(&[]), [GROUPS[2]].into()));
    }
}
