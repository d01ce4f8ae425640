//! The sections that come first: those of the functions that an order names.

use std::collections::HashSet;

use crate::listed::{Gap, Listed};
use crate::survey::Survey;

/// Sections in the order of the file, and what became of its functions.
#[derive(Debug, Default, PartialEq)]
pub struct First {
    /// Names of sections, each once.
    pub sections: Vec<String>,
    /// What is left free before each of them, and behind the last one; empty if nothing is.
    pub gaps: Vec<Gap>,
    /// Functions of the file that have a section there.
    pub placed: usize,
    /// Functions of the file that the kernel has, but in a section that can't be moved: assembly code, `.init.text`.
    pub elsewhere: usize,
}

impl First {
    /// Find the sections that an order puts first; where several objects have a function of the same name, all of them
    /// are included. Refuses an order of which nothing could be placed: it is another kernel's.
    pub fn of(order: &Listed, survey: &Survey) -> Result<Self, String> {
        let mut first = Self::default();
        let mut taken = HashSet::new();
        for (function, gap) in order.functions.iter().zip(&order.gaps) {
            if let Some(sections) = survey.sections.get(function) {
                first.placed += 1;
                let sections: Vec<_> =
                    sections.iter().filter(|section| taken.insert(section.as_str())).cloned().collect();
                first.gaps.extend((0..sections.len()).map(|place| if place == 0 { *gap } else { Gap::default() }));
                first.sections.extend(sections);
            } else if survey.elsewhere.contains(function) {
                first.elsewhere += 1;
            }
        }
        if first.placed == 0 {
            let (file, count) = (&order.file, order.functions.len());
            return Err(format!("none of the {count} functions that {file} names has a section of its own here"));
        }
        first.gaps.extend(order.gaps.last());
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefixes::tests::set;

    fn order(functions: &[&str]) -> Listed {
        let functions: Vec<String> = functions.iter().map(|name| (*name).to_owned()).collect();
        let gaps = vec![Gap { align: None, at: Some(16) }; functions.len() + 1];
        Listed { file: "order-1".to_owned(), functions, gaps }
    }

    #[test]
    fn functions_come_as_the_file_has_them_and_their_sections_once() {
        let mut survey = Survey::default();
        survey.sections.insert("b".to_owned(), set(&[".text.b", ".text.hot.b"]));
        survey.sections.insert("alias_of_b".to_owned(), set(&[".text.b"]));
        survey.sections.insert("a.cold".to_owned(), set(&[".text.unlikely.a"]));
        survey.elsewhere.insert("memcpy".to_owned());
        let first = First::of(&order(&["b", "gone", "a.cold", "memcpy", "alias_of_b"]), &survey).unwrap();
        assert_eq!(first.sections, [".text.b", ".text.hot.b", ".text.unlikely.a"]);
        assert_eq!((first.placed, first.elsewhere), (3, 1));
        let offsets: Vec<_> = first.gaps.iter().map(|gap| gap.at).collect();
        assert_eq!(offsets, [Some(16), None, Some(16), Some(16)]);
    }

    #[test]
    fn an_order_of_another_kernel_is_refused() {
        let why = First::of(&order(&["x", "y"]), &Survey::default()).unwrap_err();
        assert_eq!(why, "none of the 2 functions that order-1 names has a section of its own here");
    }
}
