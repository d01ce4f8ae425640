//! Properties: whatever an object holds, it is looked through or refused with one line. PROPTEST_CASES says how many
//! cases are tried.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use object::elf;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::costly::{Form, Rule};
use crate::files::lint_object;
use crate::finding::Level;
use crate::settings::Settings;
use crate::specimen::{Specimen, object, object_with};

fn everything() -> Settings {
    let rule = |form| Rule {
        name: "rule".into(),
        mnemonics: vec!["div".into(), "bts".into(), "lea".into(), "scasb".into()],
        form,
        cost: "much".into(),
        source: "a table".into(),
        advice: "none".into(),
        saves: Some(10.0),
    };
    let forms = [Form::Any, Form::Wide, Form::Half, Form::BitOfMemory, Form::ThreeParts, Form::Repeated];
    Settings {
        always_inline: vec!["f".into()],
        is_whole: true,
        costly: forms.into_iter().map(rule).collect(),
        ..Settings::default()
    }
}

fn sound() -> Vec<u8> {
    let calls = [(1, elf::R_X86_64_PLT32, "kernel_fpu_begin_mask"), (6, elf::R_X86_64_PC32, "g")];
    let f = Specimen {
        name: "f",
        code: &[0xe8, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x0f, 0x10, 0x07, 0xc3],
        relocations: &calls,
    };
    let g = Specimen { name: "g", code: COPY, relocations: &[] };
    object_with(&[f, g], &[("f", 0, 5, 5), ("g", 5, 2, 2)], &[0xe9, 0, 0, 0, 0, 0xeb, 0xfe])
}

/// mov eax,[rdi]; mov [rsp-4],eax; lock dec dword [rsp-4]; ret
const COPY: &[u8] = &[0x8b, 0x07, 0x89, 0x44, 0x24, 0xfc, 0xf0, 0xff, 0x4c, 0x24, 0xfc, 0xc3];

/// Return an object as the kernel's compiler makes it, with line tables.
fn compiled() -> Vec<u8> {
    static CONTENT: OnceLock<Vec<u8>> = OnceLock::new();
    let compile = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/lint/lock.c");
        let made = std::env::temp_dir().join(format!("kdyno-lint-fuzz-{}.o", std::process::id()));
        let words = ["-O2", "-g1", "-gdwarf-4", "-mno-red-zone", "-c", "-o"];
        let done = Command::new("gcc").args(words).arg(&made).arg(source).status().unwrap();
        assert!(done.success());
        let content = fs::read(&made).unwrap();
        fs::remove_file(made).unwrap();
        content
    };
    CONTENT.get_or_init(compile).clone()
}

/// Return a program with start-up code, a kernel and a library, in which only `kernel` isn't left out.
fn program() -> Vec<u8> {
    static CONTENT: OnceLock<Vec<u8>> = OnceLock::new();
    let link = || {
        let directory = std::env::temp_dir().join(format!("kdyno-lint-program-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let compile = |(name, code): (&str, &str)| {
            let (source, made) = (directory.join(format!("{name}.c")), directory.join(format!("{name}.o")));
            fs::write(&source, code).unwrap();
            assert!(Command::new("gcc").args(["-O1", "-c", "-o"]).arg(&made).arg(source).status().unwrap().success());
            made
        };
        let start = ("start", "int __libc_start_main(void); int _start(void) { return __libc_start_main(); }");
        let kernel = ("kernel", "float kernel(float v) { return v + 1; }");
        let library = "__attribute__((noinline)) static float first(float v) { return v * 2; }
            int __libc_start_main(void) { return first(3.0f * (long)&first); } float last(float v) { return v - 1; }";
        let made = directory.join("linux");
        let objects = [start, kernel, ("library", library)].map(compile);
        let linked = Command::new("gcc").args(["-nostdlib", "-static", "-o"]).arg(&made).args(objects).status();
        assert!(linked.unwrap().success());
        let content = fs::read(&made).unwrap();
        fs::remove_dir_all(directory).unwrap();
        content
    };
    CONTENT.get_or_init(link).clone()
}

#[test]
fn what_is_linked_before_and_after_a_kernel_is_left_out() {
    let findings = lint_object(&program(), "linux", &Settings::default()).unwrap();
    let functions: Vec<&str> = findings.iter().map(|finding| finding.function.as_str()).collect();
    assert_eq!(functions, ["kernel"]);
}

/// Return the bytes with some of them changed, and perhaps the end cut off.
fn damaged(sound: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xff])];
    (vec((any::<prop::sample::Index>(), byte), 0..8), 0..=sound.len()).prop_map(move |(changes, cut)| {
        let mut bytes = sound.clone();
        changes.into_iter().for_each(|(place, byte)| bytes[place.index(sound.len())] = byte);
        // Most are whole.
        bytes.truncate(if cut % 4 == 0 { cut } else { sound.len() });
        bytes
    })
}

/// Return instructions of all kinds, jumps into each other among them, and bytes that are not instructions.
fn code() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        COPY,
        &[0x48, 0x83, 0xec, 0x10],
        &[0x48, 0x83, 0xe4, 0xf0],
        &[0x48, 0x89, 0xe5],
        &[0x48, 0x8d, 0x45, 0xf8],
        &[0xc9],
        &[0x50],
        &[0xff, 0x37],
        &[0x58],
        &[0x87, 0x04, 0x24],
        &[0x75, 0xf0],
        &[0xeb, 0x05],
        &[0xe3, 0x80],
        &[0x62, 0xf1],
        &[0xf0],
        &[0x66],
        &[0xd9, 0xe8],
        &[0x0f, 0x77],
    ];
    let part = prop_oneof![4 => prop::sample::select(known).prop_map(<[u8]>::to_vec), 1 => vec(any::<u8>(), 0..16)];
    vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_object_is_looked_through_or_refused(content in prop_oneof![damaged(sound()), damaged(compiled()), damaged(program()), vec(any::<u8>(), 0..300)]) {
        if let Err(why) = lint_object(&content, "a.o", &everything()) {
            prop_assert!(!why.is_empty() && !why.contains('\n'), "{}", why);
        }
    }

    #[test]
    fn any_code_is_looked_through(first in code(), second in code()) {
        let functions = [("f", &first), ("g", &second)];
        let functions = functions.map(|(name, code)| Specimen { name, code, relocations: &[] });
        prop_assert!(lint_object(&object(&functions), "a.o", &everything()).is_ok());
    }

    #[test]
    fn any_entry_is_looked_at(offset in -20i64..20, length in any::<u8>(), new in any::<u8>(), replacement in code()) {
        let f = Specimen { name: "f", code: COPY, relocations: &[] };
        let content = object_with(&[f], &[("f", offset, length, new)], &replacement);
        prop_assert!(lint_object(&content, "a.o", &everything()).is_ok());
    }
}

#[test]
fn a_long_function_of_loops_is_given_up() {
    // Each block stores to a slot of its own, and jumps back to the block before it.
    let block = |number: u32| {
        let mut code = vec![0x8b, 0x07, 0x89, 0x84, 0x24];
        code.extend((number * 4).to_le_bytes());
        code.extend([0xf0, 0xff, 0x84, 0x24]);
        code.extend((number * 4).to_le_bytes());
        code.extend([0x75, (-19i8) as u8]);
        code
    };
    let code: Vec<u8> = (0..3_000).flat_map(block).collect();
    let content = object(&[Specimen { name: "f", code: &code, relocations: &[] }]);
    assert_eq!(given_up(&content), ["f"]);
}

/// Return the functions that were too much work, by name.
fn given_up(content: &[u8]) -> Vec<String> {
    let findings = lint_object(content, "a.o", &Settings { only: vec!["lock-on-stack-copy".into()], ..everything() });
    let notes = findings.unwrap().into_iter().filter(|finding| finding.level == Level::Note);
    notes.map(|finding| finding.function).collect()
}

#[test]
fn a_function_as_long_as_all_code_of_a_kernel_is_given_up() {
    let code: Vec<u8> = COPY.iter().copied().cycle().take(5_000_000).collect();
    assert_eq!(given_up(&object(&[Specimen { name: "f", code: &code, relocations: &[] }])), ["f"]);
}

#[test]
fn line_tables_of_all_kinds_give_the_line_or_none() {
    let finding = |content: &[u8]| lint_object(content, "a.o", &Settings::default()).unwrap().remove(0);
    let sound = compiled();
    let sound_finding = finding(&sound);
    assert!(sound_finding.source.unwrap().ends_with("lock.c"));
    assert_eq!(sound_finding.line, Some(6));
    // Without the name of the section there are no line tables.
    let name = b".debug_line\0";
    let place = sound.windows(name.len()).position(|bytes| bytes == name).unwrap();
    let mut without = sound.clone();
    without[place + 1] = b'x';
    assert_eq!(finding(&without).line, None);
}
