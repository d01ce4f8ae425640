//! Properties: any command line goes on unchanged or is understood, and a pass leaves alone what it isn't about.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use proptest::collection::vec;
use proptest::prelude::*;

use super::compile::{Call, words};
use super::family::Family;
use super::options::translated;
use super::passes::BUILT_IN;
use super::response;

fn word() -> impl Strategy<Value = OsString> {
    let known = prop::sample::select(vec![
        "-c",
        "-o",
        "-oa.o",
        "-x",
        "-xc",
        "c",
        "assembler",
        "-",
        "a.c",
        "b.S",
        "/dev/null",
        "-E",
        "-S",
        "-include",
        "-D",
        "-DX",
        "-I",
        "--param",
        "asan-stack=0",
        "-fconserve-stack",
        "-mpreferred-stack-boundary=3",
        "-mcmodel=kernel",
        "-D__KERNEL__",
        "-fPIC",
        "-Wp,-MMD,a.d",
        "-Wa,--64,",
        "-mllvm",
        "-Xassembler",
        "@",
        "@/dev/zero",
        "",
        "--",
        "-Wall",
    ]);
    prop_oneof![4 => known.prop_map(OsString::from), 1 => vec(any::<u8>(), 0..12).prop_map(OsString::from_vec)]
}

/// What can begin a line that a pass is about.
const DIRECTIVES: [&str; 20] = [
    ".comm",
    ".local",
    ".weak",
    ".globl",
    ".type",
    ".size",
    ".section",
    ".pushsection",
    ".popsection",
    ".previous",
    ".text",
    ".data",
    ".bss",
    ".addrsig",
    ".addrsig_sym",
    ".lto_discard",
    "#APP",
    "#NO_APP",
    "f:",
    ".quad",
];

fn line() -> impl Strategy<Value = Vec<u8>> {
    let rest = prop::sample::select(vec![
        "",
        " f",
        "\tx,4,4",
        "\tx",
        " x,",
        " f,@function",
        " f, .-f",
        " .text.f,\"ax\",@progbits",
        " .text.f,\"axR\"",
        " .llvm_addrsig",
        " \".llvm.x\",\"\"",
        " .data.x,\"",
        " ,,,",
        " \"",
        "#",
        " # f",
        " .debug_info",
        " f-.",
    ]);
    let known = (prop::sample::select(DIRECTIVES.to_vec()), rest);
    prop_oneof![
        6 => known.prop_map(|(word, rest)| format!("\t{word}{rest}").into_bytes()),
        1 => vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #[test]
    fn any_command_line_is_understood_word_by_word(given in vec(word(), 0..12)) {
        let call = Call::read(&given);
        prop_assert_eq!(words(&call.items), given);
        if let Some(compile) = call.compile() {
            prop_assert_eq!(call.inputs(), vec![compile.source.as_os_str()]);
        }
        for family in [Family::Gcc, Family::Clang] {
            if let Ok(translation) = translated(&call.items, family) {
                let inputs = |items: &[super::compile::Item]| items.iter().filter(|item| item.option().is_none()).count();
                prop_assert_eq!(inputs(&translation.items), inputs(&call.items));
            }
        }
    }

    #[test]
    fn any_words_go_through_a_response_file_unchanged(given in vec(word(), 0..12)) {
        prop_assert_eq!(response::split(&response::joined(&given)), given);
    }

    #[test]
    fn any_text_goes_through_passes_and_lines_that_none_is_about_stay(lines in vec(line(), 0..20)) {
        let text = lines.join(&b'\n');
        for pass in BUILT_IN {
            let Some(changed) = (pass.apply)(&text) else { continue };
            prop_assert!(changed.changes > 0 && changed.text != text, "{}", pass.name);
            let first = |line: &[u8]| line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty()).map(<[u8]>::to_vec);
            let is_about = |line: &[u8]| first(line).is_some_and(|word| word.starts_with(b"."));
            if pass.name == "used" {
                let plain = |text: &[u8]| -> Vec<Vec<u8>> {
                    text.split(|byte| *byte == b'\n').filter(|line| !is_about(line)).map(<[u8]>::to_vec).collect()
                };
                prop_assert_eq!(plain(&text), plain(&changed.text));
            }
        }
        let untouched: Vec<Vec<u8>> = lines.into_iter().filter(|line| !line.trim_ascii().starts_with(b".")).collect();
        let untouched = untouched.join(&b'\n');
        prop_assert!(BUILT_IN.iter().all(|pass| (pass.apply)(&untouched).is_none()));
    }
}
