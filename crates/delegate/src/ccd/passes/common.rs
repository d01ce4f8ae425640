//! Common symbols become definitions in .bss: the loader of kernel modules refuses common symbols.

use std::collections::HashSet;

use super::{BuiltIn, Changed, lines, operands};

pub const PASS: BuiltIn = BuiltIn { name: "common", apply };

/// What GNU as aligns a common symbol to at most, in bytes, if the directive doesn't say (as manual, `.comm`).
const ALIGNMENT: &[u8] = b"16";

fn apply(text: &[u8]) -> Option<Changed> {
    // Most files have none.
    let is_common = |line: &super::Line| line.word == b".comm" && !line.is_inline;
    if !lines(text).any(|line| is_common(&line)) {
        return None;
    }
    let named = |by: &[u8]| -> HashSet<&[u8]> {
        lines(text).filter(|line| line.word == by).flat_map(|line| operands(line.rest)).collect()
    };
    let (local, weak) = (named(b".local"), named(b".weak"));
    let mut changed = Changed { text: Vec::with_capacity(text.len() + 256), changes: 0 };
    for line in lines(text) {
        match operands(line.rest)[..] {
            [name, size, ref alignment @ ..] if is_common(&line) && !local.contains(name) => {
                let align = alignment.first().copied().unwrap_or(ALIGNMENT);
                let binding: &[u8] = if weak.contains(name) { b".weak" } else { b".globl" };
                define(name, size, align, binding, &mut changed.text);
                changed.changes += 1;
            }
            _ => changed.text.extend(line.whole),
        }
    }
    (changed.changes > 0).then_some(changed)
}

fn define(name: &[u8], size: &[u8], align: &[u8], binding: &[u8], text: &mut Vec<u8>) {
    let parts: [&[u8]; 19] = [
        b"\t.pushsection .bss,\"aw\",@nobits\n\t.balign ",
        align,
        b"\n\t",
        binding,
        b" ",
        name,
        b"\n\t.type ",
        name,
        b",@object\n\t.size ",
        name,
        b",",
        size,
        b"\n",
        name,
        b":\n\t.zero ",
        size,
        b"\n",
        b"\t.popsection",
        b"\n",
    ];
    text.extend(parts.concat());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_symbols_and_inline_assembler_stay() {
        for text in ["\t.local\tx\n\t.comm\tx,4,4\n", "#APP\n.comm x,4\n#NO_APP\n", "\t.comm\tx\n", "x:\n"] {
            assert_eq!(apply(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_definition_has_the_size_alignment_and_binding_of_the_common_symbol() {
        let changed = apply(b"\t.text\n\t.weak\ty\n\t.comm\tx,8,32\n\t.comm\ty,4\nf:\n").unwrap();
        let text = String::from_utf8(changed.text).unwrap();
        assert_eq!(changed.changes, 2);
        assert!(text.contains(".balign 32\n\t.globl x\n") && text.contains("x:\n\t.zero 8\n"), "{text}");
        assert!(text.contains(".balign 16\n\t.weak y\n"), "{text}");
        assert!(text.starts_with("\t.text\n\t.weak\ty\n") && text.ends_with("\t.popsection\nf:\n"), "{text}");
    }
}
