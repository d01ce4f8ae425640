//! Properties: whatever a kernel's build hands to its linker, the delegate does its work or says why it can't.
//! PROPTEST_CASES says how many cases are tried.

use crate::call::KernelLink;
use crate::copies::Copies;
use crate::copies::tests::{by_seed, object};
use crate::groups::GROUPS;
use crate::inputs::{Kind, each_object};
use crate::order::shuffled;
use crate::prefixes::patterns;
use crate::script::{Changes, Script, in_order, sorted};
use crate::survey::Survey;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

fn word() -> impl Strategy<Value = OsString> {
    let known = prop::sample::select(vec![
        "-T",
        "--script",
        "--script=arch/x86/kernel/vmlinux.lds",
        "-Tarch/x86/kernel/vmlinux.lds",
        "arch/x86/kernel/vmlinux.lds",
        "-o",
        "a.out",
        "-r",
        "b.o",
        "",
    ]);
    prop_oneof![2 => known.prop_map(OsString::from), 1 => vec(any::<u8>(), 0..12).prop_map(OsString::from_vec)]
}

fn script() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "*(.text",
        "*(.text)",
        "*(",
        ")",
        "/*",
        "*/",
        "/*/",
        " ",
        "\n",
        ";",
        ".text.*",
        ".text.[0-9",
        ".text.[a-z]*",
        ".text.?",
        ".text..x",
        ".text.unlikely",
        "\u{e9}",
        "\u{1f427}",
        "SECTIONS {",
        "}",
        "**",
        ".text.***",
    ]);
    let part = prop_oneof![6 => known.prop_map(str::to_owned), 1 => any::<String>()];
    vec(part, 0..24).prop_map(|parts| parts.concat())
}

/// A directory that is removed with its value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("lkd-fuzz-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Return the bytes with some of them changed, and perhaps the end cut off.
fn damaged(sound: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xff, b'/', b'`'])];
    (vec((any::<prop::sample::Index>(), byte), 0..6), 0..=sound.len()).prop_map(move |(changes, cut)| {
        let mut bytes = sound.clone();
        changes.into_iter().for_each(|(place, byte)| bytes[place.index(sound.len())] = byte);
        // Most are whole.
        bytes.truncate(if cut % 4 == 0 { cut } else { sound.len() });
        bytes
    })
}

/// Return an archive with these members; a thin one only names them.
pub fn archive(members: &[(&str, &[u8])], is_thin: bool) -> Vec<u8> {
    let mut made = if is_thin { b"!<thin>\n".to_vec() } else { b"!<arch>\n".to_vec() };
    for (name, data) in members {
        let name = format!("{name}/");
        made.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, data.len()).bytes());
        if !is_thin {
            made.extend(*data);
            made.extend(vec![b'\n'; data.len() % 2]);
        }
    }
    made
}

proptest! {
    #[test]
    fn any_call_is_understood_or_none_of_its_business(words in vec(word(), 0..10)) {
        if let Some(link) = KernelLink::read(&words) {
            let changed = link.with_script(&words, Path::new("new.lds"));
            prop_assert_eq!(changed.len(), words.len());
            prop_assert!(changed.iter().any(|word| word.to_string_lossy().ends_with("new.lds")));
            prop_assert!(link.candidates.iter().all(|path| link.is_candidate(path)));
        }
    }

    #[test]
    fn any_script_is_understood_or_refused(
        text in script(),
        names in vec(r"\.text\.[a-z._$*\[]{0,8}", 0..6),
        first in vec(r"\.text\.((hot|unlikely|split|unknown)\.)?[a-z._$*)\n ]{0,8}", 0..4),
        seed in any::<u64>(),
    ) {
        if let Ok(script) = Script::parse(&text) {
            let taken: Vec<String> = names.into_iter().filter(|name| script.takes(name)).collect();
            let first: Vec<String> = first.into_iter().filter(|name| script.moves(name)).collect();
            prop_assert!(first.iter().all(|name| !name.contains([')', '*', '\n', ' '])));
            let changes = Changes {
                first: &first,
                first_statements: sorted(".text.first."),
                groups: GROUPS.into(),
                statements: in_order(&shuffled(&taken, seed)),
                patterns: taken.iter().map(|name| format!("{name}*")).collect(),
            };
            let changed = script.with(&changes);
            let mut rest = changed.chars();
            prop_assert!(text.chars().all(|c| rest.any(|other| other == c)), "{}", changed);
            prop_assert_eq!(script.with(&Changes::default()), text);
        }
    }

    #[test]
    fn patterns_match_what_is_taken_and_nothing_else(
        taken in btree_set(r"\.text\.[ab.]{1,4}", 0..12),
        others in btree_set(r"\.text\.[ab.]{1,4}", 0..12),
    ) {
        let patterns: Vec<_> = patterns(&taken, &others).iter().map(|pattern| glob::Pattern::new(pattern).unwrap()).collect();
        let is_matched = |name: &String| patterns.iter().any(|pattern| pattern.matches(name));
        prop_assert!(taken.difference(&others).all(is_matched));
        prop_assert!(!others.iter().any(is_matched));
    }

    #[test]
    fn any_object_or_archive_is_copied_or_refused(
        content in prop_oneof![
            damaged(object(&[".text", ".text.a", ".text.bc"])),
            damaged(archive(&[("a.o", &object(&[".text.a"])), ("b.o", &object(&[".text.bc"]))], false)),
            damaged(archive(&[("input", b""), ("a.o", b"")], true)),
            vec(any::<u8>(), 0..200),
        ],
        seed in any::<u64>(),
    ) {
        let scratch = Scratch::new("copies");
        let input = scratch.0.join("input");
        fs::write(&input, content).unwrap();
        fs::write(scratch.0.join("a.o"), object(&[".text.a"])).unwrap();
        let rank = |name: &str| name.starts_with(".text.").then(|| by_seed(name, seed));
        let made = scratch.0.join("made");
        let mut copies = Copies::new(&made, &rank).unwrap();
        let words = [input.clone().into_os_string(), OsString::from("-o")];
        let script = Script::parse("SECTIONS { .text : { *(.text) } }").unwrap();
        let wanted = ["a".to_owned()];
        if let Err(why) = Survey::of(std::slice::from_ref(&input), &script, &wanted) {
            prop_assert!(!why.is_empty());
        }
        match copies.replaced(&words, &|path| path == input) {
            Ok(words) => prop_assert!(words.last().is_some_and(|word| word == "-o")),
            Err(why) => prop_assert!(!why.is_empty()),
        }
    }
}

#[test]
fn an_archive_that_names_itself_is_refused() {
    let scratch = Scratch::new("itself");
    let path = scratch.0.join("self.a");
    fs::write(&path, archive(&[("self.a", b"")], true)).unwrap();
    let mut visit = |_: &Path, _: &[u8]| Ok(());
    let why = each_object(&path, &mut visit).unwrap_err();
    assert!(why.contains("self.a") && why.contains("archives in archives"), "{why}");
    fs::write(&path, archive(&[("plain.o", b"")], true)).unwrap();
    fs::write(scratch.0.join("plain.o"), object(&[".text"])).unwrap();
    assert_eq!(each_object(&path, &mut visit), Ok(Kind::Archive));
}
