//! What only `__attribute__((used))` keeps in an object stays in the kernel as well, when the linker collects garbage.
//!
//! A compiler drops a local function or object that nothing in its file refers to, unless it is `used`. So if one is
//! still there, it is `used`; and if it has a section of its own, that section gets the flag R (SHF_GNU_RETAIN, GNU as
//! 2.36), which `ld --gc-sections` obeys.

use std::collections::{HashMap, HashSet};

use super::{BuiltIn, Changed, Line, Place, lines, operands, section, unquoted};

pub const PASS: BuiltIn = BuiltIn { name: "used", apply };

/// Directives that tell something about a symbol, and don't refer to it.
const ABOUT: [&[u8]; 8] =
    [b".type", b".size", b".local", b".hidden", b".internal", b".protected", b".addrsig_sym", b".ident"];

fn apply(text: &[u8]) -> Option<Changed> {
    let mut retained = alone(text);
    referred_to(text, &retained).into_iter().for_each(|name| {
        retained.remove(name);
    });
    let sections: HashSet<&[u8]> = retained.into_values().collect();
    if sections.is_empty() {
        return None;
    }
    let mut changed = Changed { text: Vec::with_capacity(text.len() + 64), changes: sections.len() };
    for line in lines(text) {
        match with_flag(&line, &sections) {
            Some(flagged) => changed.text.extend(flagged),
            None => changed.text.extend(line.whole),
        }
    }
    Some(changed)
}

/// Return the local functions and objects, each with its section, which has no other symbol.
fn alone(text: &[u8]) -> HashMap<&[u8], &[u8]> {
    let mut known: HashSet<&[u8]> = HashSet::new();
    let mut shared: HashSet<&[u8]> = HashSet::new();
    let mut inside: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
    let mut unfit: HashSet<&[u8]> = HashSet::new();
    let mut place = Place::new();
    for line in lines(text) {
        place.follow(&line);
        match line.word {
            b".section" if flags(&line).is_none_or(|flags| flags.contains(&b'R')) => unfit.extend(section(&line)),
            b".pushsection" => unfit.extend(section(&line)),
            b".globl" | b".global" | b".weak" => shared.extend(operands(line.rest)),
            b".type" => known.extend(operands(line.rest).first()),
            word => {
                let label = word.strip_suffix(b":").filter(|label| !label.starts_with(b".L"));
                if let Some(label) = label.filter(|_| !line.is_inline) {
                    inside.entry(place.current).or_default().push(label);
                }
            }
        }
    }
    let alone = inside.into_iter().filter_map(|(section, labels)| match labels[..] {
        [label] if known.contains(label) && !shared.contains(label) && !unfit.contains(section) => {
            is_of(section, label).then_some((label, section))
        }
        _ => None,
    });
    alone.collect()
}

/// Return whether the compiler made a section for one symbol: `.text.f`, `.text.unlikely.f`, `.data.rel.ro.x`. A
/// section that the source names has its place in the kernel's script, which says whether it is kept.
fn is_of(section: &[u8], label: &[u8]) -> bool {
    let kinds: [&[u8]; 4] = [b".text.", b".data.", b".rodata.", b".bss."];
    let before = section.strip_suffix(unquoted(label));
    before.is_some_and(|before| before.ends_with(b".") && kinds.iter().any(|kind| before.starts_with(kind)))
}

/// Return those of the names that code or data refers to, other than debugging information and the symbol itself.
fn referred_to<'a>(text: &'a [u8], names: &HashMap<&'a [u8], &'a [u8]>) -> HashSet<&'a [u8]> {
    let mut referred = HashSet::new();
    if names.is_empty() {
        return referred;
    }
    let mut place = Place::new();
    for line in lines(text) {
        if place.follow(&line) || place.current.starts_with(b".debug_") || ABOUT.contains(&line.word) {
            continue;
        }
        for word in line.whole.split(|byte| !is_of_a_name(*byte)) {
            if let Some((name, _)) = names.get_key_value(word).filter(|(_, own)| **own != place.current) {
                referred.insert(*name);
            }
        }
    }
    referred
}

fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$') || !byte.is_ascii()
}

/// Return the flags of a `.section NAME,"FLAGS",...`, with their quotes.
fn flags<'a>(line: &Line<'a>) -> Option<&'a [u8]> {
    operands(line.rest)
        .get(1)
        .copied()
        .filter(|flags| flags.len() >= 2 && flags.starts_with(b"\"") && flags.ends_with(b"\""))
}

fn with_flag(line: &Line, sections: &HashSet<&[u8]>) -> Option<Vec<u8>> {
    section(line).filter(|name| line.word == b".section" && sections.contains(name))?;
    let flags = flags(line)?;
    let operands = operands(line.rest);
    let retained = [&flags[..flags.len() - 1], b"R\""].concat();
    let mut parts: Vec<&[u8]> = vec![operands[0], &retained];
    parts.extend(&operands[2..]);
    Some([b"\t.section\t", &parts.join(&b","[..])[..], b"\n"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Return the text of local functions, each in a section of its own.
    fn functions(names: &[&str], calls: &str) -> String {
        let function = |name: &&str| {
            format!("\t.section\t.text.{name},\"ax\",@progbits\n\t.type\t{name}, @function\n{name}:\n\tret\n")
        };
        names.iter().map(function).collect::<String>() + calls
    }

    fn retained(text: &str) -> Vec<String> {
        let after = apply(text.as_bytes()).map(|changed| String::from_utf8(changed.text).unwrap()).unwrap_or_default();
        let flagged = after.lines().filter(|line| line.contains("axR"));
        flagged.map(|line| line.split(['.', ',']).nth(3).unwrap().to_owned()).collect()
    }

    #[test]
    fn a_function_that_nothing_refers_to_is_retained() {
        // A function that calls itself keeps nothing alive.
        assert_eq!(retained(&functions(&["f", "g"], "\tcall\tg\n")), ["f", "g"]);
        assert_eq!(retained(&functions(&["f", "g"], "\t.text\n\tcall\tg\n")), ["f"]);
        assert_eq!(retained(&functions(&["f"], "#APP\n\t.pushsection x; .quad f; .popsection\n#NO_APP\n")), ["f"]);
    }

    #[test]
    fn what_debuggers_and_linkers_are_told_is_no_reference() {
        let text = "\t.size\tf, .-f\n\t.addrsig_sym f\n\t.section\t.debug_info,\"\",@progbits\n\t.quad\tf\n";
        assert_eq!(retained(&functions(&["f"], text)), ["f"]);
        assert_eq!(retained(&functions(&["f"], "\t.data\n\t.quad\tf\n")), Vec::<String>::new());
    }

    #[test]
    fn global_functions_and_shared_sections_stay() {
        assert_eq!(retained(&functions(&["f"], "\t.globl\tf # a comment\n")), Vec::<String>::new());
        assert_eq!(retained(&functions(&["f"], "g:\n")), Vec::<String>::new());
        let named = functions(&["f"], "").replace(".text.f", ".init.f");
        assert_eq!(retained(&named), Vec::<String>::new());
    }
}
