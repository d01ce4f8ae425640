//! The linker script of a kernel, and the places in it where the order of functions goes.

use std::collections::BTreeSet;
use std::fmt::Write;

use glob::Pattern;

use crate::groups::{GROUPS, Group, is_grouped};
use crate::listed::Gap;
use crate::order::Placed;
use crate::scan::{is_wild, statement_start, without_comments, words};

/// A script that was understood.
pub struct Script<'a> {
    text: &'a str,
    main: Main,
    /// Where the description of the main input's output section starts.
    block: usize,
    /// Patterns that give sections a place of their own, and where they stand: `.text.hot.*`, `.text.unlikely.*`.
    placed: Vec<(usize, Pattern)>,
}

/// The main input, `*(.text ...)`.
#[derive(Clone, Copy)]
struct Main {
    start: usize,
    end: usize,
    /// Where its pattern `.text` ends.
    text_end: usize,
    /// Whether it takes all of `.text.*`, as it does with dead code elimination.
    is_wide: bool,
}

/// What goes into a script.
#[derive(Debug, Default)]
pub struct Changes<'a> {
    /// Sections that come first, by the names that the script knows them by.
    pub first: &'a [String],
    /// The statements for these.
    pub first_statements: String,
    /// Groups that get a statement of their own.
    pub groups: BTreeSet<Group>,
    /// Statements for functions, before the main input.
    pub statements: String,
    /// Patterns for functions, in the main input, where sections keep the order of the inputs.
    pub patterns: Vec<String>,
}

impl<'a> Script<'a> {
    /// Find the main input and what has its place elsewhere; returns why that can't be.
    pub fn parse(text: &'a str) -> Result<Self, String> {
        let bare = without_comments(text);
        let main = main_input(&bare)?;
        let is_own = |at: usize| (main.start..main.end).contains(&at);
        let placed = words(&bare)
            .filter(|(at, word)| word.starts_with(".text.") && !(is_own(*at) && is_wild(word)))
            .map(|(at, word)| match Pattern::new(word) {
                Ok(pattern) => Ok((at, pattern)),
                Err(error) => Err(format!("{word} in the linker script: {error}")),
            })
            .collect::<Result<_, _>>()?;
        let block = bare[..main.start].rfind('{').map_or(0, |at| at + 1);
        Ok(Self { text, main, block, placed })
    }

    /// Return whether a section with code belongs to one function, and has no other place in the script.
    pub fn takes(&self, name: &str) -> bool {
        is_functions(name) && !self.placed.iter().any(|(_, pattern)| pattern.matches(name))
    }

    /// Return whether an order may move a section: one that `takes` accepts, or one of a group. A group that has its
    /// place in an earlier output section stays there: the first pattern that matches gets a section.
    pub fn moves(&self, name: &str) -> bool {
        let is_earlier = |(at, pattern): &(usize, Pattern)| *at < self.block && pattern.matches(name);
        self.takes(name) || is_functions(name) && is_grouped(name) && !self.placed.iter().any(is_earlier)
    }

    /// Return the script with the changes; the rest stays as it is. Functions go before the main input, which may take
    /// all of `.text.*`; the hot group goes before them, the cold ones after it. What else the main input takes comes
    /// after the functions: assembly code without sections of its own.
    pub fn with(&self, changes: &Changes) -> String {
        let group = |is_cold| {
            let groups = changes.groups.iter().filter(move |group| group.is_cold == is_cold);
            groups.map(|group| format!("*({}*)\n", group.prefix)).collect::<String>()
        };
        // A wide main input leaves nothing to what comes after it.
        let (before, after) =
            if self.main.is_wide { (group(true) + &group(false), String::new()) } else { (group(false), group(true)) };
        let first = self.place_of_first(changes.first);
        let patterns: String = changes.patterns.iter().map(|pattern| format!("\n{pattern}")).collect();
        let main = self.main;
        [
            &self.text[..first],
            &on_own_line(&changes.first_statements),
            &self.text[first..main.start],
            &on_own_line(&(before + &changes.statements)),
            &self.text[main.start..main.text_end],
            if main.is_wide { "" } else { &patterns },
            &self.text[main.text_end..main.end],
            &on_own_line(&after),
            &self.text[main.end..],
        ]
        .concat()
    }

    /// Return the place before the first input of the main output section that would take one of these sections, or hot
    /// ones.
    fn place_of_first(&self, sections: &[String]) -> usize {
        let is_taker = |(at, pattern): &&(usize, Pattern)| {
            (self.block..self.main.start).contains(at)
                && (pattern.matches(&format!("{}f", GROUPS[0].prefix))
                    || sections.iter().any(|name| pattern.matches(name)))
        };
        let Some((taker, _)) = self.placed.iter().find(is_taker) else { return self.main.start };
        let bare = without_comments(&self.text[..*taker]);
        statement_start(&bare, self.block)
    }
}

/// Where the first function of an order begins. A local symbol of the kernel.
const START: &str = "__kdyno_order";

/// Return statements for the sections that come first, one for each, with their gaps.
pub fn with_gaps(sections: &[String], gaps: &[Gap]) -> String {
    let names = sections.iter().map(|name| format!("*({name})\n"));
    let spaced = names.zip(gaps).map(|(statement, gap)| left_free(gap) + &statement);
    with_start(gaps, &spaced.collect::<String>())
}

/// Move the place of what comes next; never back.
pub fn left_free(gap: &Gap) -> String {
    let align = gap.align.map_or(String::new(), |align| format!(". = ALIGN({align});\n"));
    align + &gap.at.map_or(String::new(), |at| format!(". = MAX(ALIGN(16), {START} + {at});\n"))
}

/// Return the statements, preceded by their start if one of the gaps needs that, and followed by the last gap.
pub fn with_start(gaps: &[Gap], statements: &str) -> String {
    let (Some(first), Some(last)) = (gaps.first(), gaps.last()) else { return statements.to_owned() };
    let is_needed = gaps.iter().any(|gap| gap.at.is_some());
    let align = first.align.map_or(String::new(), |align| format!(". = ALIGN({align});\n"));
    let start = if is_needed { format!("{align}HIDDEN({START} = .);\n") } else { String::new() };
    start + statements + &left_free(last)
}

/// Return statements for sections in their order, one for each: several patterns in one statement keep the order of the
/// inputs, not that of the patterns.
pub fn in_order(order: &[Placed]) -> String {
    let mut list = String::with_capacity(order.len() * 64);
    for Placed { name, align } in order {
        if let Some(align) = align {
            writeln!(list, ". = ALIGN({align});").expect("a string takes all");
        }
        writeln!(list, "*({name})").expect("a string takes all");
    }
    list
}

/// Return the statement for all sections whose names start so, sorted by name.
pub fn sorted(prefix: &str) -> String {
    format!("*(SORT_BY_NAME({prefix}*))\n")
}

/// Return whether a section may belong to one function by its name, and can be written in a script. Names that start
/// with `.text..` are the kernel's own.
pub fn is_functions(name: &str) -> bool {
    let Some(function) = name.strip_prefix(".text.") else { return false };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$');
    !function.is_empty() && !function.starts_with('.') && function.bytes().all(is_word)
}

fn on_own_line(statements: &str) -> String {
    if statements.is_empty() { String::new() } else { format!("\n{statements}") }
}

/// Return where `*(.text ...)` is: the input that has `.text` itself (TEXT_MAIN in include/asm-generic/vmlinux.lds.h),
/// with no pattern before it but plain names; before Linux 5.10 that was `*(.text.hot .text .text.fixup
/// .text.unlikely)`. A script with none or with several of them isn't understood.
fn main_input(script: &str) -> Result<Main, String> {
    let inputs: Vec<Main> = script
        .match_indices("*(")
        .filter_map(|(start, _)| {
            let end = start + script[start..].find(')')? + 1;
            let inside = || words(&script[start + 2..end - 1]);
            let (at, _) = inside().take_while(|(_, word)| !is_wild(word)).find(|(_, word)| *word == ".text")?;
            let is_wide = inside().any(|(_, word)| word.starts_with(".text.") && is_wild(word));
            Some(Main { start, end, text_end: start + 2 + at + ".text".len(), is_wide })
        })
        .collect();
    match inputs[..] {
        [only] => Ok(only),
        [] => Err("no input `*(.text ...)` in the linker script: there is no place for the order".to_owned()),
        _ => Err(format!("{} inputs `*(.text ...)` in the linker script: which is the main one?", inputs.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "SECTIONS { .text : { _text = .; *(.head.text) . = ALIGN(16); *(.text.hot .text.hot.*) \
        *(.text .text.fixup) *(.text.unlikely .text.unlikely.*) *(.sched.text) *(.text..refcount) _etext = .; } \
        .init.text : { KEEP(*(.init.text .text.startup)) } /DISCARD/ : { *(.text.exit) } }";
    const WIDE: &str = "*(.text .text.[0-9a-zA-Z_]* .text.fixup)";
    /// The script of Linux 4.14 to 5.9.
    const OLD: &str =
        "SECTIONS { .text : { . = ALIGN(8); *(.text.hot .text .text.fixup .text.unlikely) *(.ref.text) } }";
    /// The script of Linux 6.13 and newer, with CONFIG_AUTOFDO_CLANG.
    const NEW: &str = "SECTIONS { .head : { *(.text.unlikely.head*) } .text : { *(.text.asan.* .text.tsan.*) \
        KEEP(*(.text.unknown .text.unknown.*)) __split_text_start = .; *(.text.split .text.split.[0-9a-zA-Z_]*) \
        *(.text.unlikely .text.unlikely.*) . = ALIGN((1 << 12)); *(.text.hot .text.hot.*) \
        *(.text .text.[0-9a-zA-Z_]* .text.fixup) } }";

    fn changed(script: &str, changes: Changes) -> String {
        Script::parse(script).unwrap().with(&changes)
    }

    fn with_first(script: &str, section: &str) -> String {
        let first = [section.to_owned()];
        changed(script, Changes { first: &first, first_statements: "X".to_owned(), ..Changes::default() })
    }

    #[test]
    fn what_comes_first_stands_before_all_that_would_take_it() {
        assert_eq!(with_first(SCRIPT, ".text.a"), SCRIPT.replace("*(.text.hot ", "\nX*(.text.hot "));
        assert_eq!(with_first(OLD, ".text.a"), OLD.replace("*(.text.hot ", "\nX*(.text.hot "));
        assert_eq!(with_first(NEW, ".text.a"), NEW.replace("*(.text.hot ", "\nX*(.text.hot "));
        assert_eq!(with_first(NEW, ".text.split.a"), NEW.replace("*(.text.split ", "\nX*(.text.split "));
        assert_eq!(with_first(NEW, ".text.unknown.a"), NEW.replace("KEEP(", "\nXKEEP("));
    }

    #[test]
    fn gaps_are_left_where_they_are_asked_for() {
        let sections = [".text.a".to_owned(), ".text.b".to_owned()];
        let at = |at| Gap { align: None, at: Some(at) };
        let gaps = [Gap { align: Some(64), at: None }, at(32), at(96)];
        let expected = ". = ALIGN(64);\nHIDDEN(__kdyno_order = .);\n. = ALIGN(64);\n*(.text.a)\n\
            . = MAX(ALIGN(16), __kdyno_order + 32);\n*(.text.b)\n. = MAX(ALIGN(16), __kdyno_order + 96);\n";
        assert_eq!(with_gaps(&sections, &gaps), expected);
        assert_eq!(with_gaps(&sections, &[Gap::default(); 3]), "*(.text.a)\n*(.text.b)\n");
        assert_eq!(with_gaps(&[], &[]), "");
    }

    #[test]
    fn groups_that_a_script_lacks_go_beside_the_main_input() {
        let groups = || Changes { groups: GROUPS.into(), ..Changes::default() };
        assert_eq!(
            changed(OLD, groups()),
            OLD.replace("*(.text.hot ", "\n*(.text.hot.*)\n*(.text.hot ")
                .replace("unlikely) ", "unlikely)\n*(.text.split.*)\n*(.text.unlikely.*)\n ")
        );
        let wide = SCRIPT.replace("*(.text .text.fixup)", WIDE);
        assert_eq!(
            changed(&wide, groups()),
            wide.replace("*(.text ", "\n*(.text.split.*)\n*(.text.unlikely.*)\n*(.text.hot.*)\n*(.text ")
        );
    }

    #[test]
    fn patterns_widen_a_main_input_that_is_not_wide() {
        let patterns = || Changes { patterns: vec![".text.a*".to_owned(), ".text.b".to_owned()], ..Changes::default() };
        assert_eq!(changed(OLD, patterns()), OLD.replace(" .text .", " .text\n.text.a*\n.text.b ."));
        assert_eq!(changed(NEW, patterns()), NEW);
    }

    #[test]
    fn sections_of_groups_may_be_moved_where_the_script_has_them_beside_the_main_input() {
        for name in [".text.a", ".text.hot.a", ".text.unlikely.a", ".text.split.a", ".text.unknown.a"] {
            assert!(Script::parse(NEW).unwrap().moves(name), "{name}");
        }
        for name in
            [".text.unlikely.head_a", ".text.asan.a", ".text.fixup", ".text..refcount", ".text.hot", ".init.text"]
        {
            assert!(!Script::parse(NEW).unwrap().moves(name), "{name}");
        }
        for name in [".text.hot.a) *(.data", ".text.hot.*", ".text.a b", ".text.a\nb", ".text.\u{e9}"] {
            assert!(!Script::parse(SCRIPT).unwrap().moves(name), "{name}");
        }
    }

    #[test]
    fn the_order_goes_before_the_main_input_and_all_else_stays() {
        let order = [Placed { name: ".text.b", align: None }, Placed { name: ".text.a", align: Some(64) }];
        assert_eq!(
            changed(SCRIPT, Changes { statements: in_order(&order), ..Changes::default() }),
            SCRIPT.replace("*(.text ", "\n*(.text.b)\n. = ALIGN(64);\n*(.text.a)\n*(.text ")
        );
        assert_eq!(
            changed(SCRIPT, Changes { statements: sorted(".text.lkd."), ..Changes::default() }),
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
            script.with(&Changes { statements: sorted("x"), ..Changes::default() }),
            commented.replace("*(.text .text.fixup)", "\n*(SORT_BY_NAME(x*))\n*(.text .text.fixup)")
        );
    }

    #[test]
    fn a_script_without_a_place_for_the_order_is_refused() {
        let none = SCRIPT.replace("*(.text .text.fixup)", "*(.text.* .text)");
        assert!(Script::parse(&none).err().unwrap().contains("no place"));
        let two = SCRIPT.replace("*(.sched.text)", "*(.text)");
        assert!(Script::parse(&two).err().unwrap().starts_with("2 inputs"));
    }
}
