//! The linker script of a kernel, and the one place in it where the order of functions goes.

use std::fmt::Write;

use glob::Pattern;

use crate::order::Placed;

/// A script that was understood.
pub struct Script<'a> {
    text: &'a str,
    /// Where the main input of `.text` stands.
    main: (usize, usize),
    /// Patterns that give sections a place of their own: `.text.hot.*`, `.text.unlikely.*`.
    placed: Vec<Pattern>,
}

impl<'a> Script<'a> {
    /// Find the main input and what has its place elsewhere; returns why that can't be.
    pub fn parse(text: &'a str) -> Result<Self, String> {
        let bare = without_comments(text);
        let main = main_input(&bare)?;
        let own = words(&bare[main.0..main.1]).filter(|word| !word.contains(['*', '?', '[']));
        let placed = words(&bare[..main.0])
            .chain(own)
            .chain(words(&bare[main.1..]))
            .filter(|word| word.starts_with(".text."))
            .map(|word| Pattern::new(word).map_err(|error| format!("{word} in the linker script: {error}")))
            .collect::<Result<_, _>>()?;
        Ok(Self { text, main, placed })
    }

    /// Whether a section with code is one function's, and has no other place in the script. Names that start with
    /// `.text..` are the kernel's own.
    pub fn takes(&self, name: &str) -> bool {
        let Some(function) = name.strip_prefix(".text.") else { return false };
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
        !function.is_empty()
            && !function.starts_with('.')
            && function.bytes().all(is_word)
            && !self.placed.iter().any(|pattern| pattern.matches(name))
    }

    /// The script with the sections in their order, each in a statement of its own: several patterns in one statement
    /// keep the order of the inputs, not that of the patterns.
    pub fn with_order(&self, order: &[Placed]) -> String {
        let mut list = String::with_capacity(order.len() * 64);
        for Placed { name, align } in order {
            if let Some(align) = align {
                writeln!(list, ". = ALIGN({align});").expect("a string takes all");
            }
            writeln!(list, "*({name})").expect("a string takes all");
        }
        self.with(&list)
    }

    /// The script with all sections whose names start so, sorted by name.
    pub fn with_sorted(&self, prefix: &str) -> String {
        self.with(&format!("*(SORT_BY_NAME({prefix}*))\n"))
    }

    /// Statements go before the main input, which may take all of `.text.*` (dead code elimination). What else it takes
    /// comes after them: assembly code without sections of its own.
    fn with(&self, statements: &str) -> String {
        format!("{}\n{statements}{}", &self.text[..self.main.0], &self.text[self.main.0..])
    }
}

fn words(part: &str) -> impl Iterator<Item = &str> {
    part.split(|each: char| each.is_whitespace() || matches!(each, '(' | ')' | ';'))
}

/// The script with blanks for its comments, which name patterns as well (7.0 and newer); every place stays the same.
fn without_comments(script: &str) -> String {
    let mut bare = String::with_capacity(script.len());
    let mut rest = script;
    while let Some((before, comment)) = rest.split_once("/*") {
        let end = comment.find("*/").map_or(comment.len(), |at| at + 2);
        bare.push_str(before);
        bare.extend(std::iter::repeat_n(' ', end + 2));
        rest = &comment[end..];
    }
    bare + rest
}

/// Where `*(.text ...)` stands: the input whose first pattern is exactly `.text` (TEXT_MAIN in
/// include/asm-generic/vmlinux.lds.h). A script with none or with several of them isn't understood.
fn main_input(script: &str) -> Result<(usize, usize), String> {
    let found: Vec<(usize, usize)> = script
        .match_indices("*(")
        .filter_map(|(start, _)| {
            let end = start + script[start..].find(')')? + 1;
            let first = script[start + 2..end - 1].split_whitespace().next()?;
            (first == ".text").then_some((start, end))
        })
        .collect();
    match found[..] {
        [only] => Ok(only),
        [] => Err("no input `*(.text ...)` in the linker script: there is no place for the order".to_owned()),
        _ => Err(format!("{} inputs `*(.text ...)` in the linker script: which is the main one?", found.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "SECTIONS { .text : { _text = .; *(.head.text) . = ALIGN(16); *(.text.hot .text.hot.*) \
        *(.text .text.fixup) *(.text.unlikely .text.unlikely.*) *(.sched.text) *(.text..refcount) _etext = .; } \
        .init.text : { KEEP(*(.init.text .text.startup)) } /DISCARD/ : { *(.text.exit) } }";
    const WIDE: &str = "*(.text .text.[0-9a-zA-Z_]* .text.fixup)";

    #[test]
    fn the_order_goes_before_the_main_input_and_all_else_stays() {
        let order = [Placed { name: ".text.b", align: None }, Placed { name: ".text.a", align: Some(64) }];
        assert_eq!(
            Script::parse(SCRIPT).unwrap().with_order(&order),
            SCRIPT.replace("*(.text ", "\n*(.text.b)\n. = ALIGN(64);\n*(.text.a)\n*(.text ")
        );
        assert_eq!(
            Script::parse(SCRIPT).unwrap().with_sorted(".text.lkd."),
            SCRIPT.replace("*(.text ", "\n*(SORT_BY_NAME(.text.lkd.*))\n*(.text ")
        );
    }

    #[test]
    fn what_the_script_names_elsewhere_keeps_its_place() {
        for text in [SCRIPT.to_owned(), SCRIPT.replace("*(.text .text.fixup)", WIDE)] {
            let script = Script::parse(&text).unwrap();
            for name in [".text.sys_open", ".text.do_exit.part.0", ".text.hotplug", ".text.f$1", ".text.startup.f"] {
                assert!(script.takes(name), "{name}");
            }
            for name in [".text", ".text.", ".text..refcount", ".text.unlikely", ".text.unlikely.f", ".text.hot.f"] {
                assert!(!script.takes(name), "{name}");
            }
            for name in [".text.startup", ".text.exit", ".text.fixup", ".sched.text", ".init.text", ".text.a b"] {
                assert!(!script.takes(name), "{name}");
            }
        }
    }

    #[test]
    fn comments_say_nothing() {
        let commented = SCRIPT.replace("_text = .;", "/* matches .text.* and *(.text) — as a rule */ _text = .;");
        let script = Script::parse(&commented).unwrap();
        assert!(script.takes(".text.sys_open") && !script.takes(".text.hot.f"));
        assert_eq!(
            script.with_sorted("x"),
            commented.replace("*(.text .text.fixup)", "\n*(SORT_BY_NAME(x*))\n*(.text .text.fixup)")
        );
        assert_eq!(without_comments("a/*b*/c/**/d/*e"), "a     c    d   ");
    }

    #[test]
    fn a_script_without_a_place_for_the_order_is_refused() {
        let none = SCRIPT.replace("*(.text .text.fixup)", "*(.text.* .text)");
        assert!(Script::parse(&none).err().unwrap().contains("no place"));
        let two = SCRIPT.replace("*(.sched.text)", "*(.text)");
        assert!(Script::parse(&two).err().unwrap().starts_with("2 inputs"));
    }
}
