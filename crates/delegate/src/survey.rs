//! What the objects of a link hold, as far as its order is concerned, and what compilers called hot or cold in them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol};

use crate::grouped::Grouped;
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
    /// The sections of groups, wherever the script puts them, in the order of the inputs.
    pub grouped: Vec<Grouped>,
}

impl Survey {
    /// Look at every object of the files; `wanted` are the symbols that are asked for.
    pub fn of(files: &[PathBuf], script: &Script, wanted: &[String]) -> Result<Self, String> {
        let wanted: HashSet<&str> = wanted.iter().map(String::as_str).collect();
        let mut survey = Self::default();
        for file in files {
            each_object(file, &mut |path, data| {
                survey.add(path, &parse(path, data)?, script, &wanted);
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

    fn add(&mut self, path: &Path, object: &Elf, script: &Script, wanted: &HashSet<&str>) {
        let mut movable = BTreeMap::new();
        let mut marked = BTreeMap::new();
        for section in code(object, &|name| name.starts_with(".text.")) {
            let is_taken = script.takes(section.name);
            if is_taken {
                self.functions.insert(section.name.to_owned());
            } else {
                self.others.insert(section.name.to_owned());
            }
            if let Some(group) = group_of(section.name) {
                let grouped = Grouped::of(path, &section);
                if let Some(mark) = group.mark {
                    marked.insert(section.index, (group, mark, is_taken, grouped));
                } else {
                    self.lacking.extend(is_taken.then_some(group));
                    self.grouped.extend(grouped);
                }
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
            if marked.get(&section.0).is_some_and(|(_, mark, ..)| name.ends_with(mark))
                && let Some((group, _, is_taken, grouped)) = marked.remove(&section.0)
            {
                self.lacking.extend(is_taken.then_some(group));
                self.grouped.extend(grouped);
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

    /// Return an object with a section of code for each name, and in it one function of the name behind it.
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
            let path = Path::new("x.o");
            survey.add(path, &parse(path, &data).unwrap(), &script, &wanted.iter().copied().collect());
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

    #[test]
    fn what_compilers_called_hot_or_cold_is_kept_wherever_the_script_puts_it() {
        let one: &[_] = &[(".text.hot.f", "f"), (".text.unlikely.f", "f.cold"), (".text.g", "g"), (".text.hot", "h")];
        let two: &[_] = &[(".text.split.k", "k.cold"), (".text.split.part.0", "split.part.0"), (".text.hot.f", "f")];
        let grouped = survey(&[one, two], &[]).grouped;
        let names: Vec<&str> = grouped.iter().map(|section| section.section.as_str()).collect();
        assert_eq!(names, [".text.hot.f", ".text.unlikely.f", ".text.hot.f", ".text.split.k"]);
        assert!(grouped.iter().all(|section| section.object == "x.o" && section.bytes == 1));
    }
}
