//! always-inline-emitted: a function that the source declares always_inline stands in the text on its own.
//!
//! The kernel relies on it where a function may not be called (noinstr code, code that runs before relocation) and
//! where its arguments must be constants in inline assembler.

use rustc_hash::FxHashSet;

use super::{Look, Place};

/// What compilers append to the name of a copy or a part of a function.
const CLONES: [&str; 9] =
    [".constprop.", ".isra.", ".part.", ".cold", ".llvm.", ".__uniq.", ".lto_priv.", ".localalias", ".specialized."];

pub fn run(look: &Look) -> Vec<Place> {
    let names: FxHashSet<&str> = look.settings.always_inline.iter().map(String::as_str).collect();
    let emitted = |name: &str| names.contains(name);
    let functions = look.binary.functions.iter().filter(|function| emitted(declared_name(function.name)));
    let place = |function: &crate::binary::Function| {
        let message =
            format!("{} is declared always_inline, but was emitted as a function", declared_name(function.name));
        Place { is_instruction: false, ..Place::instruction(function.start, message) }
    };
    functions.map(place).collect()
}

/// Return the name of a function in the source.
pub fn declared_name(name: &str) -> &str {
    let cut = CLONES.iter().filter_map(|clone| name.find(clone)).min();
    &name[..cut.unwrap_or(name.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_known_by_the_name_in_the_source() {
        let names = ["f", "f.cold", "f.part.0", "f.constprop.0.isra.1", "f.isra.0.cold", "f.llvm.123"];
        assert!(names.iter().all(|name| declared_name(name) == "f"));
        assert_eq!(declared_name("f.other"), "f.other");
    }
}
