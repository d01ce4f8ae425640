//! `zig cc`: clang behind a driver of its own, which is made for programs. Found with zig 0.17.1 (clang 22.1.8) on files of
//! Linux 6.12, by what it refuses and by what `-###` shows.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use super::{Row, Translation, drop_all};
use crate::ccd::compile::Item;

/// Zig without a target compiles for the host's CPU and C library.
pub const WORDS: [&str; 5] = [
    "-target",
    // No C library; `freestanding` would have no stack protector.
    "x86_64-linux-none",
    // Position-independent code is the default, and isn't turned off by -fno-PIE. The kernel's model of code refuses it.
    "-fno-PIC",
    // It has undefined behaviour call a handler unless told otherwise.
    "-fno-sanitize=undefined",
    // It defines NDEBUG when it optimises.
    "-UNDEBUG",
];

/// What becomes part of -mcpu: zig lists every feature of the CPU behind clang's own words, and overrules them.
const FEATURES: [(&str, &str); 2] = [
    ("-mno-80387", "-x87"),
    ("-mretpoline-external-thunk", "+retpoline_external_thunk+retpoline_indirect_branches+retpoline_indirect_calls"),
];

/// What doesn't stay; the rest of a call is clang's.
pub const ROWS: [Row; 2] = [
    drop_all("-mtune=", "generic", "zig takes it for -mcpu, and has no `generic`"),
    drop_all("-march=", "x86-64", "it becomes part of -mcpu"),
];

/// Return whether a command is `zig cc` or `python3 -m ziglang cc`.
pub fn is_zig(command: &[String]) -> bool {
    let is = |word: &String| matches!(word.rsplit('/').next(), Some("zig" | "ziglang"));
    matches!(command, [.., zig, cc] if cc == "cc" && is(zig))
}

/// Adapt a call in clang's words to zig.
pub fn adapted(translation: Translation) -> Translation {
    let mut cpu = "x86_64".to_owned();
    let mut features = String::new();
    let mut adapted = Translation { items: Vec::new(), changes: translation.changes };
    for item in translation.items {
        let option = item.option().unwrap_or_default();
        let text = option.to_string_lossy().into_owned();
        if let Some((_, feature)) = FEATURES.iter().find(|(option, _)| item.is(option)) {
            features.push_str(feature);
        }
        if let Some(name) = text.strip_prefix("-march=") {
            cpu = name.replace('-', "_");
        }
        if let Some(counts) = text.strip_prefix("-fpatchable-function-entry=").and_then(|counts| counts.split_once(','))
        {
            // Its driver takes one number only.
            let words = [
                "-Xclang".to_owned(),
                format!("-fpatchable-function-entry={}", counts.0),
                "-Xclang".to_owned(),
                format!("-fpatchable-function-entry-offset={}", counts.1),
            ];
            adapted.changes.push((text, words.join(" ")));
            adapted.items.extend(words.map(|word| Item::Option(word.into())));
        } else if ROWS.iter().any(|row| row.is_about(option.as_bytes())) {
            adapted.changes.push((text, String::new()));
        } else {
            adapted.items.push(item);
        }
    }
    adapted.items.push(Item::Option(OsString::from(format!("-mcpu={cpu}{features}"))));
    adapted.items.extend(WORDS.map(|word| Item::Option(word.into())));
    adapted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ccd::compile::{Call, words};

    fn call(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn zig_is_known_by_its_command() {
        let is = |line: &str| is_zig(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(is("zig cc") && is("/opt/zig/zig cc") && is("python3 -m ziglang cc"));
        assert!(!is("zig c++") && !is("clang-19") && !is("cc") && !is("tzig cc"));
    }

    #[test]
    fn the_cpu_has_the_features_that_the_kernel_asks_for() {
        let line =
            "-march=x86-64-v3 -mtune=generic -mno-80387 -mretpoline-external-thunk -fpatchable-function-entry=16,16";
        let items = Call::read(&call(line)).items;
        let adapted = adapted(Translation { items, changes: Vec::new() });
        let cpu = "-mcpu=x86_64_v3-x87+retpoline_external_thunk+retpoline_indirect_branches+retpoline_indirect_calls";
        let expected = format!(
            "-mno-80387 -mretpoline-external-thunk -Xclang -fpatchable-function-entry=16 -Xclang \
             -fpatchable-function-entry-offset=16 {cpu} {}",
            WORDS.join(" ")
        );
        assert_eq!(words(&adapted.items), call(&expected));
        assert_eq!(adapted.changes.len(), 3);
    }
}
