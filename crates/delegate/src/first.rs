//! The sections that come first: those of the functions that an order names.

use std::collections::HashSet;

use crate::listed::Listed;
use crate::survey::Survey;

/// Sections in the order of the file, and what became of its functions.
#[derive(Debug, Default, PartialEq)]
pub struct First {
    /// Names of sections, each once.
    pub sections: Vec<String>,
    /// Functions of the file that have a section there.
    pub placed: usize,
    /// Functions of the file that the kernel has, but in a section that can't be moved: assembly code, `.init.text`.
    pub elsewhere: usize,
}

impl First {
    /// Where the same name is a function's in several objects, all of them come. Refuses an order of which nothing
    /// could be placed: it is another kernel's.
    pub fn of(order: &Listed, survey: &Survey) -> Result<Self, String> {
        let mut first = Self::default();
        let mut seen = HashSet::new();
        for function in &order.functions {
            if let Some(sections) = survey.sections.get(function) {
                first.placed += 1;
                first.sections.extend(sections.iter().filter(|section| seen.insert(section.as_str())).cloned());
            } else if survey.elsewhere.contains(function) {
                first.elsewhere += 1;
            }
        }
        if first.placed == 0 {
            let (file, count) = (&order.file, order.functions.len());
            return Err(format!("none of the {count} functions that {file} names has a section of its own here"));
        }
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefixes::tests::set;

    fn order(functions: &[&str]) -> Listed {
        let functions = functions.iter().map(|name| (*name).to_owned()).collect();
        Listed { file: "order-1".to_owned(), functions }
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
    }

    #[test]
    fn an_order_of_another_kernel_is_refused() {
        let why = First::of(&order(&["x", "y"]), &Survey::default()).unwrap_err();
        assert_eq!(why, "none of the 2 functions that order-1 names has a section of its own here");
    }
}
