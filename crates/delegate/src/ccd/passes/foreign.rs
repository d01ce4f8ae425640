//! Sections and directives that only LLVM's tools know go away: GNU as refuses some of them, and GNU ld keeps tables in
//! them whose symbol numbers are wrong after `ld -r`.

use super::{BuiltIn, Changed, Line, lines, section};

pub const PASS: BuiltIn = BuiltIn { name: "foreign", apply };

/// Directives of LLVM's assembler (LLVM's "Extensions" manual).
const DIRECTIVES: [&[u8]; 4] = [b".addrsig", b".addrsig_sym", b".lto_discard", b".lto_set_conditional"];

/// Sections of LLVM's (the same manual), by how they start.
const SECTIONS: [&[u8]; 4] = [b".llvm", b".deplibs", b".linker-options", b".stack_sizes"];

fn apply(text: &[u8]) -> Option<Changed> {
    let mut changed = Changed { text: Vec::with_capacity(text.len()), changes: 0 };
    let mut skipped = Skipped::Nothing;
    for line in lines(text) {
        let is_switch =
            !line.is_inline && (section(&line).is_some() || matches!(line.word, b".previous" | b".popsection"));
        match skipped {
            _ if line.is_inline => {}
            Skipped::Nothing => {}
            Skipped::Pushed if line.word == b".popsection" => {
                skipped = Skipped::Nothing;
                continue;
            }
            Skipped::Pushed => continue,
            // `.previous` goes back to where the text already is.
            Skipped::Section if line.word == b".previous" => {
                skipped = Skipped::Nothing;
                continue;
            }
            Skipped::Section if !is_switch => continue,
            Skipped::Section => skipped = Skipped::Nothing,
        }
        if is_foreign_section(&line) {
            skipped = if line.word == b".pushsection" { Skipped::Pushed } else { Skipped::Section };
            changed.changes += 1;
        } else if !line.is_inline && DIRECTIVES.contains(&line.word) {
            changed.changes += 1;
        } else {
            changed.text.extend(line.whole);
        }
    }
    (changed.changes > 0).then_some(changed)
}

/// What is left out of the text.
#[derive(Clone, Copy)]
enum Skipped {
    Nothing,
    /// Up to the next section.
    Section,
    /// Up to `.popsection`.
    Pushed,
}

fn is_foreign_section(line: &Line) -> bool {
    !line.is_inline && section(line).is_some_and(|name| SECTIONS.iter().any(|start| name.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str) -> String {
        apply(text.as_bytes()).map_or(text.to_owned(), |changed| String::from_utf8(changed.text).unwrap())
    }

    #[test]
    fn directives_and_sections_of_llvm_go_and_all_else_stays() {
        let text = "\t.text\nf:\n\t.addrsig\n\t.addrsig_sym f\n\tret\n\t.section\t.llvm_bb_addr_map,\"o\",@llvm_bb_addr_map,.text\n\t.byte\t2\n\t.text\ng:\n";
        assert_eq!(after(text), "\t.text\nf:\n\tret\n\t.text\ng:\n");
    }

    #[test]
    fn the_text_goes_on_where_it_was_before_a_section_of_llvm() {
        assert_eq!(after("a:\n.section .llvmcmd\n.byte 1\n.previous\nb:\n"), "a:\nb:\n");
        assert_eq!(after("a:\n.pushsection .deplibs\n.section .data\n.byte 1\n.popsection\nb:\n"), "a:\nb:\n");
    }

    #[test]
    fn inline_assembler_stays() {
        let text = "#APP\n.addrsig\n.section .llvm_x\n#NO_APP\n";
        assert_eq!(after(text), text);
    }
}
