//! Options of one compiler family in the words of the other: data, and the one function that applies it.
//!
//! Every option needs a row. One that has none isn't passed on in the hope that it means the same: that is an error.

mod table;
#[cfg(test)]
mod tests;
mod to_both;
mod to_clang;
mod to_gcc;
mod zig;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::compile::Item;
use super::family::Family;
use super::plan::Compiler;

pub use table::table;
pub use zig::is_zig;

/// What the other family makes of an option, and why.
#[derive(Debug, Clone, Copy)]
pub enum Answer {
    Keep,
    Drop(&'static str),
    Replace(&'static [&'static str], &'static str),
    /// The words replace the beginning of the option; what follows it goes behind the last of them.
    Respell(&'static [&'static str], &'static str),
}

/// An option, and the answer to it.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    option: &'static str,
    /// What follows the option in an example, if the row is about all options that start so.
    example: Option<&'static str>,
    answer: Answer,
    /// The first major version of the compiler that knows it, where that isn't older than all that build Linux 6.12.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests try each row"))]
    since: u32,
    /// What has to stand beside it when it is tried.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests try each row"))]
    beside: &'static [&'static str],
}

impl Row {
    const fn new(option: &'static str, answer: Answer) -> Self {
        Self { option, example: None, answer, since: 0, beside: &[] }
    }

    const fn since(self, since: u32) -> Self {
        Self { since, ..self }
    }

    const fn beside(self, beside: &'static [&'static str]) -> Self {
        Self { beside, ..self }
    }

    fn is_about(&self, option: &[u8]) -> bool {
        match self.example {
            None => option == self.option.as_bytes(),
            Some(_) => option.starts_with(self.option.as_bytes()),
        }
    }

    /// Return the words in place of an option that the row is about; `None` if it stays.
    fn replacement(&self, option: &OsStr) -> Option<Vec<OsString>> {
        let (by, rest) = match self.answer {
            Answer::Keep => return None,
            Answer::Drop(_) => (&[][..], &[][..]),
            Answer::Replace(by, _) => (by, &[][..]),
            Answer::Respell(by, _) => (by, &option.as_bytes()[self.option.len()..]),
        };
        let mut words: Vec<OsString> = by.iter().map(OsString::from).collect();
        if let Some(last) = words.last_mut() {
            last.push(OsStr::from_bytes(rest));
        }
        Some(words)
    }
}

const fn keep(option: &'static str) -> Row {
    Row::new(option, Answer::Keep)
}

/// Return a row for all options that start so; `example` is the rest of one of them.
const fn keep_all(option: &'static str, example: &'static str) -> Row {
    Row { example: Some(example), ..Row::new(option, Answer::Keep) }
}

const fn drop(option: &'static str, why: &'static str) -> Row {
    Row::new(option, Answer::Drop(why))
}

const fn drop_all(option: &'static str, example: &'static str, why: &'static str) -> Row {
    Row { example: Some(example), ..drop(option, why) }
}

const fn replace(option: &'static str, by: &'static [&'static str], why: &'static str) -> Row {
    Row::new(option, Answer::Replace(by, why))
}

const fn respell(option: &'static str, example: &'static str, by: &'static [&'static str], why: &'static str) -> Row {
    Row { example: Some(example), ..Row::new(option, Answer::Respell(by, why)) }
}

/// Return the rows for a family, first those of its own.
fn rows(family: Family) -> impl Iterator<Item = &'static Row> {
    let own = match family {
        Family::Clang => to_clang::ROWS,
        Family::Gcc => to_gcc::ROWS,
    };
    own.iter().chain(to_both::ROWS)
}

/// Return the words for a family beyond the translated ones: Kbuild would pass them to a compiler of this family
/// itself.
fn additional(family: Family) -> &'static [&'static str] {
    match family {
        Family::Clang => to_clang::ADDITIONAL,
        Family::Gcc => to_gcc::ADDITIONAL,
    }
}

/// A call's words for another family.
#[derive(Debug, PartialEq)]
pub struct Translation {
    pub items: Vec<Item>,
    /// What changed: the option, and what stands in its place; nothing where it was dropped.
    pub changes: Vec<(String, String)>,
}

/// Translate a call into the words of a compiler; `from` is the family that it was made for. Returns the first option
/// that has no row.
pub fn for_compiler(items: Vec<Item>, from: Family, compiler: &Compiler) -> Result<Translation, OsString> {
    let translation = if compiler.family == from {
        Translation { items, changes: Vec::new() }
    } else {
        translated(&items, compiler.family)?
    };
    Ok(if is_zig(&compiler.command) { zig::adapted(translation) } else { translation })
}

/// Translate a call for a family; returns the first option that has no row.
pub fn translated(items: &[Item], family: Family) -> Result<Translation, OsString> {
    let mut translation = Translation { items: Vec::with_capacity(items.len() + 16), changes: Vec::new() };
    for item in items {
        let Some(option) = item.option() else {
            translation.items.push(item.clone());
            continue;
        };
        let Some(row) = rows(family).find(|row| row.is_about(option.as_bytes())) else { return Err(option) };
        let Some(by) = row.replacement(&option) else {
            translation.items.push(item.clone());
            continue;
        };
        let text = by.join(OsStr::new(" "));
        translation.changes.push((option.to_string_lossy().into_owned(), text.to_string_lossy().into_owned()));
        translation.items.extend(by.into_iter().map(Item::Option));
    }
    translation.items.extend(additional(family).iter().map(|word| Item::Option(word.into())));
    Ok(translation)
}
