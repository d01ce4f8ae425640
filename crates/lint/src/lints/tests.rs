//! Each lint on an object of a few instructions that it says something about, and on its sound neighbour.

use object::elf::{R_X86_64_PC8, R_X86_64_PLT32};

use crate::costly::{Form, Rule};
use crate::files::{Told, lint_files, lint_object};
use crate::finding::{Finding, Level};
use crate::settings::Settings;
use crate::specimen::{Specimen, object, object_of_data, object_of_version, object_with};

const RET: &[u8] = &[0xc3];
const CALL: &[u8] = &[0xe8, 0, 0, 0, 0, 0xc3];
/// movups xmm0,[rdi]; ret
const VECTOR: &[u8] = &[0x0f, 0x10, 0x07, 0xc3];
/// call X; movups xmm0,[rdi]; ret
const CALL_AND_VECTOR: &[u8] = &[0xe8, 0, 0, 0, 0, 0x0f, 0x10, 0x07, 0xc3];
/// mov eax,[rdi]; mov [rsp-4],eax; then what follows
const FILL: [u8; 6] = [0x8b, 0x07, 0x89, 0x44, 0x24, 0xfc];
/// lock dec dword [rsp-4]; ret
const LOCK: [u8; 6] = [0xf0, 0xff, 0x4c, 0x24, 0xfc, 0xc3];

fn plain<'a>(name: &'a str, code: &'a [u8]) -> Specimen<'a> {
    Specimen { name, code, relocations: &[] }
}

fn findings_of(content: &[u8], settings: Settings) -> Vec<Finding> {
    lint_object(content, "a.o", &settings).unwrap()
}

fn messages(content: &[u8], only: &str) -> Vec<String> {
    let settings = Settings { only: vec![only.to_owned()], ..Settings::default() };
    findings_of(content, settings).into_iter().map(|finding| finding.message).collect()
}

#[test]
fn a_lock_on_a_copy_is_found_with_function_instruction_and_place() {
    let code = [&FILL[..], &LOCK[..]].concat();
    let findings = findings_of(&object(&[plain("f", RET), plain("dec", &code)]), Settings::default());
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!((finding.lint, finding.level), ("lock-on-stack-copy", Level::Error));
    assert_eq!((finding.function.as_str(), finding.section.as_str()), ("dec", ".text"));
    assert_eq!((finding.address.as_str(), finding.instruction.as_str()), ("0x16", "lock dec dword [rsp-4]"));
    assert!(finding.message.contains("`mov eax,[rdi]` at 0x10"), "{}", finding.message);
    assert_eq!((&finding.source, finding.line), (&None, None));
}

#[test]
fn objects_that_live_on_the_stack_are_no_copies() {
    let number = [&[0xc7, 0x44, 0x24, 0xfc, 1, 0, 0, 0][..], &LOCK[..]].concat();
    let overwritten = [&FILL[..], &[0x89, 0x74, 0x24, 0xfc], &LOCK[..]].concat();
    let pointed_at = [&[0x48, 0x8d, 0x74, 0x24, 0xfc], &FILL[..], &LOCK[..]].concat();
    let barrier = [&FILL[..], &[0xf0, 0x83, 0x44, 0x24, 0xfc, 0, 0xc3]].concat();
    // mov ecx,[rsp-4]; lock cmpxchg [rdi],ecx: what was loaded there goes back there.
    let written_back = [&FILL[..], &LOCK[..5], &[0x8b, 0x4c, 0x24, 0xfc, 0xf0, 0x0f, 0xb1, 0x0f, 0xc3]].concat();
    let called = [&FILL[..], &CALL[..5], &LOCK[..]].concat();
    for code in [number, overwritten, pointed_at, barrier, written_back, called] {
        assert_eq!(messages(&object(&[plain("f", &code)]), "lock-on-stack-copy"), [""; 0], "{code:x?}");
    }
}

#[test]
fn variables_that_debians_modules_fill_from_memory_are_no_copies() {
    let changed = &LOCK[..5];
    // dm-cache: mov [rsp-8],rax; lock dec qword [rsp-8]: the 4 bytes that were loaded are 8 now.
    let longer = [&FILL[..2], &[0x48, 0x89, 0x44, 0x24, 0xf8, 0xf0, 0x48, 0xff, 0x4c, 0x24, 0xf8, 0xc3]].concat();
    // mlx5: mov dword [rdi],0 after the load.
    let cleared = [&FILL[..2], &[0xc7, 0x07, 0, 0, 0, 0], &FILL[2..], &LOCK[..]].concat();
    // btrfs: lock dec dword [rdi] before that of the copy.
    let both = [&FILL[..], &[0xf0, 0xff, 0x0f], &LOCK[..]].concat();
    // bnx2x: mov rbx,rdi; mov eax,[rdi+8]; the copy is changed; add rbx,8; lock dec dword [rbx].
    let load = [&[0x48, 0x89, 0xfb, 0x8b, 0x47, 0x08][..], &FILL[2..]].concat();
    let moved = [&load[..], changed, &[0x48, 0x83, 0xc3, 0x08, 0xf0, 0xff, 0x0b, 0xc3]].concat();
    // lea rbx,[rdi+8] in place of the addition.
    let made = [&load[..], changed, &[0x48, 0x8d, 0x5f, 0x08, 0xf0, 0xff, 0x0b, 0xc3]].concat();
    // mov eax,[rsp-4]; mov [rsi],eax: the changed value is used.
    let used = [&FILL[..], changed, &[0x8b, 0x44, 0x24, 0xfc, 0x89, 0x06, 0xc3]].concat();
    // bnx2x of Linux 7: lock btr dword [rsp-4],3; lock and byte [rdi],0xf7, which is the same without the bit's old value.
    let bit = [&FILL[..], &[0xf0, 0x0f, 0xba, 0x74, 0x24, 0xfc, 3], &[0xf0, 0x80, 0x27, 0xf7, 0xc3]].concat();
    // The pointer was put aside over a call: mov [rsp-16],rdi; call; mov rdi,[rsp-16], on one of two ways.
    let (put, got) = ([0x48, 0x89, 0x7c, 0x24, 0xf0], [0x48, 0x8b, 0x7c, 0x24, 0xf0]);
    let call_between = [&[0x85, 0xf6, 0x74, 0x0a], &CALL[..5], &got].concat();
    let reloaded = [&put[..], &FILL, changed, &call_between, &[0xf0, 0xff, 0x0f, 0xc3]].concat();
    // gpiolib: two bits of the copy are changed, and then mov eax,[rsp-4]; mov [rdi],eax.
    let twice = [&FILL[..], changed, changed, &[0x8b, 0x44, 0x24, 0xfc, 0x89, 0x07, 0xc3]].concat();
    for code in [longer, cleared, both, moved, made, used, bit, reloaded, twice] {
        assert_eq!(messages(&object(&[plain("f", &code)]), "lock-on-stack-copy"), [""; 0], "{code:x?}");
    }
    // mov eax,[rsp-4]; mov [rdi],eax: the original is written, and not atomically.
    let restored = [&FILL[..], changed, &[0x8b, 0x44, 0x24, 0xfc, 0x89, 0x07, 0xc3]].concat();
    // The operand is copied anew for a second one, or the first one is in a loop: jz to the start of it.
    let anew = [&FILL[..], changed, &[0x8b, 0x44, 0x24, 0xfc, 0x89, 0x07], &FILL[..], changed].concat();
    let anew = [&anew[..], &[0x8b, 0x44, 0x24, 0xfc, 0x89, 0x07, 0xc3]].concat();
    assert_eq!(messages(&object(&[plain("f", &anew)]), "lock-on-stack-copy").len(), 2);
    let loop_around = [&FILL[..], changed, &[0x74, 0xf9, 0x8b, 0x44, 0x24, 0xfc, 0x89, 0x07, 0xc3]].concat();
    // Other memory is changed: lock dec dword [rdi+4]; lock dec dword [rbx] after add rbx,4.
    let beside = [&FILL[..], &[0xf0, 0xff, 0x4f, 0x04], &LOCK[..]].concat();
    let other = [&load[..], changed, &[0x48, 0x83, 0xc3, 0x04, 0xf0, 0xff, 0x0b, 0xc3]].concat();
    // 2004's: mov eax,[rdi]; mov [rsp-4],eax; lock cmpxchg [rsp-4],ecx; lock dec dword [rdi].
    let exchanged = [&FILL[..], &[0xf0, 0x0f, 0xb1, 0x4c, 0x24, 0xfc, 0xf0, 0xff, 0x0f, 0xc3]].concat();
    // lock bts dword [rsp-4],3; lock and byte [rdi],0xf7: one sets what the other clears.
    let opposite = [&FILL[..], &[0xf0, 0x0f, 0xba, 0x6c, 0x24, 0xfc, 3], &[0xf0, 0x80, 0x27, 0xf7, 0xc3]].concat();
    // The pointer that was put aside isn't the one that is changed: its place was written, or was half of one.
    let overwritten =
        [&put[..], &FILL, changed, &[0x48, 0x89, 0x54, 0x24, 0xf0], &got, &[0xf0, 0xff, 0x0f, 0xc3]].concat();
    let half = [&put[..], &FILL, changed, &[0x8b, 0x7c, 0x24, 0xf0, 0xf0, 0xff, 0x0f, 0xc3]].concat();
    for code in [restored, beside, other, exchanged, opposite, overwritten, half, loop_around] {
        assert_eq!(messages(&object(&[plain("f", &code)]), "lock-on-stack-copy").len(), 1, "{code:x?}");
    }
}

#[test]
fn a_word_of_an_object_that_is_copied_whole_is_no_copy() {
    // lea rsi,[rsp-24]; mov rax,[rdi]; mov [rsp-24],rax; mov rax,[rdi+8]; mov [rsp-16],rax; lock or byte [rsp-9],0x80
    let (pointer, first) = ([0x48, 0x8d, 0x74, 0x24, 0xe8], [0x48, 0x8b, 0x07, 0x48, 0x89, 0x44, 0x24, 0xe8]);
    let (second, lock) =
        ([0x48, 0x8b, 0x47, 0x08, 0x48, 0x89, 0x44, 0x24, 0xf0], [0xf0, 0x80, 0x4c, 0x24, 0xf7, 0x80, 0xc3]);
    let found = |code: &[&[u8]]| messages(&object(&[plain("f", &code.concat())]), "lock-on-stack-copy").len();
    assert_eq!(found(&[&pointer, &first, &second, &lock]), 0);
    assert_eq!(found(&[&first, &second, &lock]), 1, "nobody has its address");
    assert_eq!(found(&[&pointer, &second, &lock]), 1, "the object that has an address isn't a copy");
    // mov rax,[rdi+16]
    assert_eq!(found(&[&pointer, &first, &[0x48, 0x8b, 0x47, 0x10], &second[4..], &lock]), 1, "from two places");
}

#[test]
fn data_that_a_linker_marks_as_code_is_none() {
    // fld1; ret, twice: a symbol with a size is on the first alone
    let content = object_of_data(&[plain("start_other_kernel", &[0xd9, 0xe8, 0xc3])], &[0xd9, 0xe8, 0xc3]);
    let findings = findings_of(&content, Settings::default());
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!((finding.function.as_str(), finding.section.as_str()), ("start_other_kernel", ".data"));
    assert!(finding.message.contains("one instruction"), "{}", finding.message);
}

#[test]
fn a_copy_is_followed_through_branches_and_moves_of_the_stack() {
    // test esi,esi; jz over a nop; sub rsp,8: the slot is at rsp+4 now; lock dec dword [rsp+4]; ret
    let code = [&FILL[..], &[0x85, 0xf6, 0x74, 0x01, 0x90, 0x48, 0x83, 0xec, 0x08, 0xf0, 0xff, 0x4c, 0x24, 0x04, 0xc3]]
        .concat();
    assert_eq!(messages(&object(&[plain("f", &code)]), "lock-on-stack-copy").len(), 1);
    // The way around the store leaves the slot what the other way made it: a variable.
    let number = [0xc7, 0x44, 0x24, 0xfc, 1, 0, 0, 0];
    let either = [&FILL[..], &[0x85, 0xf6, 0x74, 0x08], &number, &LOCK[..]].concat();
    assert_eq!(messages(&object(&[plain("f", &either)]), "lock-on-stack-copy"), [""; 0]);
}

#[test]
fn vector_registers_are_found_unless_the_fpu_is_saved() {
    let begin = [(1, R_X86_64_PLT32, "kernel_fpu_begin_mask")];
    let [message] = &messages(&object(&[plain("f", VECTOR)]), "simd-in-kernel")[..] else { panic!() };
    assert!(message.starts_with("SSE (xmm) registers in one instruction outside"), "{message}");
    let guarded = Specimen { name: "f", code: CALL_AND_VECTOR, relocations: &begin };
    assert_eq!(messages(&object(&[guarded]), "simd-in-kernel"), [""; 0]);
    assert_eq!(messages(&object(&[plain("f", &[0xd9, 0xe8, 0xc3])]), "simd-in-kernel").len(), 1, "fld1");
    let with = |name| {
        let relocations = [(1, R_X86_64_PLT32, name)];
        messages(&object(&[Specimen { name: "f", code: CALL_AND_VECTOR, relocations: &relocations }]), "simd-in-kernel")
    };
    assert_eq!((with("switch_fpu_return").len(), with("printk").len()), (0, 1), "KVM looks at a guest's registers");
}

#[test]
fn setting_up_and_clearing_the_x87_unit_is_no_use_of_it() {
    // fninit; fnstsw [rdi]; fnstcw [rdi], and fnclex; emms; fild dword [rdi]
    let upkeep: [&[u8]; 2] = [&[0xdb, 0xe3, 0xdd, 0x3f, 0xd9, 0x3f, 0xc3], &[0xdb, 0xe2, 0x0f, 0x77, 0xdb, 0x07, 0xc3]];
    for code in upkeep {
        assert_eq!(messages(&object(&[plain("f", code)]), "simd-in-kernel"), [""; 0]);
        let and_more = [&code[..code.len() - 1], VECTOR].concat();
        assert_eq!(messages(&object(&[plain("f", &and_more)]), "simd-in-kernel").len(), 1, "and a vector");
    }
    assert_eq!(messages(&object(&[plain("f", &[0xdb, 0x07, 0xc3])]), "simd-in-kernel").len(), 1, "fild alone");
}

#[test]
fn a_function_that_only_guarded_ones_call_may_use_vectors() {
    let [directory, glue, code] = ["", "glue.o", "code.o"]
        .map(|name| std::env::temp_dir().join(format!("kdyno-lint-{}", std::process::id())).join(name));
    std::fs::create_dir_all(&directory).unwrap();
    let relocations = [(1, R_X86_64_PLT32, "kernel_fpu_begin"), (6, R_X86_64_PLT32, "xor_vectors")];
    let calls = [&CALL[..5], CALL].concat();
    std::fs::write(&glue, object(&[Specimen { name: "glue", code: &calls, relocations: &relocations }])).unwrap();
    std::fs::write(&code, object(&[plain("xor_vectors", VECTOR), plain("other", VECTOR)])).unwrap();
    let files = [glue, code].map(|path| path.to_str().unwrap().to_owned()).to_vec();
    let mut functions = Vec::new();
    let settings = Settings { files, ..Settings::default() };
    crate::files::lint_files(&settings, &mut |told| {
        if let Told::Finding(finding) = told {
            functions.push(finding.function);
        }
    });
    std::fs::remove_dir_all(directory).unwrap();
    assert_eq!(functions, ["other"]);
}

#[test]
fn calls_of_what_nobody_defines_are_found() {
    let call = |name| object(&[Specimen { name: "f", code: CALL, relocations: &[(1, R_X86_64_PLT32, name)] }]);
    assert_eq!(messages(&call("__udivti3"), "unknown-call").len(), 1);
    assert_eq!(messages(&call("printk"), "unknown-call"), [""; 0]);
    let whole = |symbols: &[&str]| {
        let symbols = symbols.iter().map(|name| (*name).to_owned()).collect();
        findings_of(&call("printk"), Settings { is_whole: true, symbols, ..Settings::default() }).len()
    };
    assert_eq!((whole(&[]), whole(&["printk"])), (1, 0));
}

#[test]
fn clones_of_functions_that_are_always_inline_are_found() {
    let settings = Settings { always_inline: vec!["fls".into()], ..Settings::default() };
    let findings = findings_of(&object(&[plain("fls.constprop.0", RET), plain("fls64", RET)]), settings);
    assert_eq!(findings.iter().map(|finding| finding.function.as_str()).collect::<Vec<_>>(), ["fls.constprop.0"]);
}

#[test]
fn alternatives_that_cant_be_put_in_place_are_found() {
    let nop = [0x0f, 0x1f, 0x40, 0, 0xc3];
    let message = |lengths: (u8, u8), offset, replacement: &[u8]| {
        let content = object_with(&[plain("f", &nop)], &[("f", offset, lengths.0, lengths.1)], replacement);
        messages(&content, "alternatives").join("; ")
    };
    assert_eq!(message((4, 2), 0, &[0xeb, 0xfe]), "");
    assert_eq!(message((4, 0), 0, &[]), "");
    assert!(message((3, 2), 0, &[0x66, 0x90]).contains("aren't whole instructions"));
    assert!(message((9, 2), 0, &[0x66, 0x90]).contains("beyond the end of .text"));
    assert!(message((4, 2), 1, &[0x66, 0x90]).contains("beyond the end of .altinstr_replacement"));
    assert!(message((4, 5), 0, &[0x66, 0x90, 0x66, 0x90, 0x90]).contains("5 bytes is put in the place of 4"));
    assert!(message((4, 2), 0, &[0xe3, 0x20]).contains("can't move"));
    assert!(message((4, 2), 0, &[0xeb, 0x20]).contains("no code of the running kernel"));
    assert!(message((4, 1), 0, &[0x48, 0x90]).contains("isn't made of whole instructions"));
}

#[test]
fn entries_of_each_version_of_linux_are_read_and_others_are_a_note() {
    let nop = [0x0f, 0x1f, 0x40, 0, 0xc3];
    let findings = |version, length| {
        // As many entries as make the table a multiple of each size.
        let entries = vec![("f", 0, length, 2); 14 * 12 * 13];
        let content = object_of_version(&[plain("f", &nop)], &entries, &[0xeb, 0xfe], version);
        findings_of(&content, Settings::default())
    };
    for version in [(14, 12), (12, 10), (13, 10)] {
        assert_eq!(findings(version, 4), [], "{version:?}");
        assert_eq!(findings(version, 3).len(), 14 * 12 * 13, "{version:?}");
    }
    let [finding] = &findings((20, 18), 4)[..] else { panic!() };
    assert_eq!(finding.level, Level::Note);
    assert!(finding.message.starts_with("not looked at"), "{}", finding.message);
}

#[test]
fn relocations_that_the_kernel_cant_follow_are_found() {
    let strange = Specimen { name: "f", code: CALL, relocations: &[(1, R_X86_64_PC8, "g")] };
    let content = object_with(&[strange], &[("f", 0, 5, 0)], &[]);
    assert_eq!(messages(&content, "alternatives"), [""; 0], "only those of replacements matter");
}

fn division(form: Form) -> Rule {
    Rule {
        name: "division".into(),
        mnemonics: vec!["div".into()],
        form,
        cost: "76 cycles".into(),
        source: "a table".into(),
        advice: "none".into(),
        saves: None,
    }
}

/// div rsi; div esi; div rsi; ret
const DIVISIONS: [u8; 9] = [0x48, 0xf7, 0xf6, 0xf7, 0xf6, 0x48, 0xf7, 0xf6, 0xc3];

fn costly(settings: Settings) -> Vec<(String, String, String)> {
    let content = object(&[plain("f", &DIVISIONS), plain("g", &DIVISIONS[5..])]);
    let findings = findings_of(&content, settings).into_iter();
    findings.map(|finding| (finding.function, finding.address, finding.message)).collect()
}

#[test]
fn costly_instructions_are_counted_by_function() {
    let all = costly(Settings { costly: vec![division(Form::Wide)], ..Settings::default() });
    let message = |here| format!("division, {here} of 3: 76 cycles (a table); none");
    assert_eq!(all, [("f".into(), "0x0".into(), message(2)), ("g".into(), "0x10".into(), message(1))]);
    let half = costly(Settings { costly: vec![division(Form::Half)], ..Settings::default() });
    assert_eq!(half, [("f".into(), "0x3".into(), "division, 1 of 1: 76 cycles (a table); none".into())]);
}

#[test]
fn with_a_load_what_is_executed_counts_and_the_instruction_that_is_executed_most_is_named() {
    let rule = Rule { saves: Some(10.0), ..division(Form::Wide) };
    let run = |executions: &[(u64, f64)], rule: &Rule| {
        let executions = Some(executions.to_vec());
        costly(Settings { costly: vec![rule.clone()], executions, ..Settings::default() })
    };
    // Addresses in objects begin above those of every file before.
    let content = object(&[plain("f", &DIVISIONS), plain("g", &DIVISIONS[5..])]);
    let base = crate::binary::Binary::parse(&content, &[]).unwrap().functions[0].start;
    let message = |times, cycles| {
        let load = format!("{times} of 4.0 executions per million instructions");
        format!("division, 2 of 3, {load}, up to {cycles} cycles: 76 cycles (a table); none")
    };
    // The first division of f once, its second one three times; g not at all.
    let steps = [(0, 0.0), (base, 1.0), (base + 5, 3.0), (base + 8, 0.0)];
    assert_eq!(run(&steps, &rule), [("f".into(), "0x5".into(), message("4.0", "40.0"))]);
    let unmeasured = run(&steps, &division(Form::Wide));
    assert!(!unmeasured[0].2.contains("up to"), "{unmeasured:?}");
    assert_eq!(run(&[(0, 0.0)], &rule), []);
    assert_eq!(run(&[], &rule), []);
}

#[test]
fn the_functions_that_execute_most_are_named_however_many_instructions_they_have() {
    let content = object(&[plain("f", &DIVISIONS), plain("g", &DIVISIONS[5..])]);
    let functions = crate::binary::Binary::parse(&content, &[]).unwrap().functions;
    let executions = Some(vec![(functions[0].start, 0.5), (functions[1].start, 200.0)]);
    let settings = Settings { costly: vec![division(Form::Wide)], executions, ..Settings::default() };
    let findings = findings_of(&content, settings);
    let times: Vec<_> = findings.iter().map(|finding| (finding.function.as_str(), finding.executions)).collect();
    assert_eq!(times, [("g", Some(200.0)), ("f", Some(1.0))]);
    assert_eq!(findings[0].cycles, None);
    let load = "division, 1 of 3, 200 of 201 executions per million instructions: 76 cycles";
    assert!(findings[0].message.starts_with(load), "{}", findings[0].message);
}

#[test]
fn what_is_no_object_is_refused_with_one_line() {
    let why = |content: &[u8]| lint_object(content, "a.o", &Settings::default()).unwrap_err();
    assert!(why(b"\x7fELF, but cut off").starts_with("it is not a readable ELF file"));
    let mut other = object(&[plain("f", RET)]);
    other[18] = 0x28;
    assert_eq!(why(&other), "it is made for 32-bit ARM, and only x86-64 is known here");
    other[18] = 0xb7;
    assert_eq!(why(&other), "it is made for arm64, and only x86-64 is known here");
    other[18] = 0x01;
    assert_eq!(why(&other), "it isn't made for x86-64 (its ELF machine is 1)");
    other[5] = 2; // big-endian
    other[18..20].copy_from_slice(&[0, 22]);
    assert_eq!(why(&other), "it is made for s390, and only x86-64 is known here");
}

#[test]
fn what_is_compressed_is_refused_with_the_program_that_unpacks_it() {
    for (content, said) in [
        (&b"\xfd7zXZ\0..."[..], "it is compressed (xz): unpack it first, with xz -dk"),
        (&b"\x28\xb5\x2f\xfd..."[..], "it is compressed (zstd): unpack it first, with zstd -d"),
        (&b"\x1f\x8b..."[..], "it is compressed (gzip): unpack it first, with gzip -dk"),
        (&b"BZh9..."[..], "it is compressed (bzip2): unpack it first, with bzip2 -dk"),
    ] {
        assert_eq!(lint_object(content, "a.ko", &Settings::default()).unwrap_err(), said);
    }
}

#[test]
fn a_name_that_would_fill_the_memory_is_refused() {
    let name = "f".repeat(4097);
    let why = lint_object(&object(&[plain(&name, RET)]), "a.o", &Settings::default()).unwrap_err();
    assert_eq!(why, "it has a name of 4097 bytes");
    let called = lint_object(
        &object(&[Specimen { name: "f", code: CALL, relocations: &[(1, R_X86_64_PLT32, &name)] }]),
        "a.o",
        &Settings::default(),
    );
    assert_eq!(called.unwrap_err(), "it has a name of 4097 bytes");
    assert!(lint_object(&object(&[plain(&name[1..], RET)]), "a.o", &Settings::default()).is_ok());
}

#[test]
fn findings_without_end_are_told_in_part_and_said_to_be_more() {
    let calls: Vec<u8> = [0xe8, 0, 0, 0, 0].repeat(100_001);
    let places: Vec<(u64, u32, &str)> = (0..100_001)
        .map(|number| (number * 5 + 1, R_X86_64_PLT32, if number % 2 == 0 { "malloc" } else { "free" }))
        .collect();
    let path = std::env::temp_dir().join(format!("kdyno-lint-{}.o", std::process::id()));
    std::fs::write(&path, object(&[Specimen { name: "f", code: &calls, relocations: &places }])).unwrap();
    let file = path.to_str().unwrap().to_owned();
    let settings = Settings { files: vec![file.clone()], ..Settings::default() };
    let mut outputs = Vec::new();
    lint_files(&settings, &mut |output| outputs.push(output));
    std::fs::remove_file(&path).unwrap();
    let findings = outputs.iter().filter(|output| matches!(output, Told::Finding(_))).count();
    assert_eq!(findings, 100_000);
    assert!(matches!(outputs.last(), Some(Told::Refused { why, .. }) if why.starts_with("more than 100000 findings")));
}
