//! Probes of Kconfig, which all compilers of a plan have to pass.

use std::io::Write;
use std::process::{Output, Stdio};

use serde_json::json;

use crate::kit::{Place, has_clang, messages, plan};

fn place(name: &str) -> Place {
    let place = Place::new(name);
    let mut plan = plan();
    plan["held"] = json!(true);
    place.plan(&plan);
    place
}

fn ask(place: &Place, line: &str, source: &str) -> Output {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = place.command(&words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Who doesn't read it doesn't need it.
    let _ = child.stdin.take().unwrap().write_all(source.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn a_probe_passes_if_every_compiler_passes_it_in_its_own_words() {
    if !has_clang() {
        return;
    }
    let place = place("passes");
    for (line, source) in [
        ("-Werror -fconserve-stack -c -x c /dev/null -o x.o", ""),
        ("-Werror -mpreferred-stack-boundary=3 -c -x c /dev/null -o x.o", ""),
        ("-Werror -Wno-dangling-pointer -Wimplicit-fallthrough=5 -c -x c /dev/null -o x.o", ""),
        ("-x c - -c -o /dev/null", "void f(void) { asm inline (\"\"); }"),
        ("-Wa,--fatal-warnings -c -x assembler-with-cpp -o /dev/null -", "nop\n"),
        ("-x c - -fsyntax-only", "int x;"),
    ] {
        let output = ask(&place, line, source);
        assert!(output.status.success(), "{line}: {}", messages(&output));
    }
    assert!(place.has("x.o") && place.records().is_empty() && place.litter().is_empty());
}

#[test]
fn a_question_about_boot_code_is_the_references_alone() {
    if !has_clang() {
        return;
    }
    let place = place("boot");
    for words in ["-m16", "-m32", "-fPIC", "-fPIE"] {
        let line = format!("{words} -fipa-pta -c -x c /dev/null -o x.o");
        assert_eq!(ask(&place, &line, "").status.code(), Some(0), "{line}");
    }
    assert!(place.records().is_empty());
}

#[test]
fn a_probe_that_one_compiler_refuses_fails_and_is_on_record() {
    if !has_clang() {
        return;
    }
    let place = place("refused");
    for (line, source, why) in [
        ("-fplugin=x.so -c -x c /dev/null -o x.o", "", None),
        ("-fipa-pta -c -x c /dev/null -o x.o", "", Some("the table has no row for -fipa-pta")),
        ("-x c - -c -o /dev/null", "int f(void) { int g(void) { return 1; } return g(); }", Some("error: ")),
        ("-x c - -S -o /dev/null", "int __seg_fs fs; int __seg_gs gs;", Some("Linux uses named address spaces")),
        ("-x c - -c -o /dev/null", "nonsense", None),
    ] {
        let before = place.records().len();
        assert_eq!(ask(&place, line, source).status.code(), Some(1), "{line}");
        let records = place.records();
        assert_eq!(records.len() - before, usize::from(why.is_some()), "{line}");
        if let Some(why) = why {
            let record = records.last().unwrap();
            assert_eq!(record["refused_by"], "clang");
            assert!(record["why"].as_str().unwrap().contains(why), "{record}");
            assert_eq!(record["probe"], json!(line.split(' ').collect::<Vec<_>>()));
        }
    }
    assert!(place.litter().is_empty());
}

#[test]
fn a_question_whose_answer_is_text_goes_to_the_reference_alone() {
    let place = place("text");
    let mut plan = plan();
    plan["held"] = json!(true);
    plan["compilers"]["clang"]["command"] = json!(["false"]);
    place.plan(&plan);
    let output = ask(&place, "-S -x c - -o -", "int x;");
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("x:"));
    let output = ask(&place, "-E -P -x c -", "__GNUC__\n");
    assert!(String::from_utf8_lossy(&output.stdout).trim().parse::<u32>().is_ok());
}

#[test]
fn a_file_among_the_temporary_ones_is_a_probe_and_a_file_of_the_tree_is_none() {
    let place = place("files");
    let mut plan = plan();
    plan["held"] = json!(true);
    plan["compilers"]["clang"]["command"] = json!(["false"]);
    place.plan(&plan);
    place.write("tmp/probe.c", "int x;\n");
    let probe = place.file("tmp/probe.c");
    assert!(!place.ccd(&["-c", "-o", "x.o", probe.to_str().unwrap()]).status.success());
    assert_eq!(place.records().pop().unwrap()["why"], "it failed without a message");
    let source = place.file("a.c");
    assert!(place.ccd(&["-c", "-o", "x.o", source.to_str().unwrap()]).status.success());
    assert_eq!(place.records().pop().unwrap()["answer"], "passed");
}

#[test]
fn a_compiler_whose_text_gnu_as_assembles_is_asked_with_gnu_as() {
    if !has_clang() {
        return;
    }
    let place = place("assembler");
    // A directive of GNU as that LLVM's assembler doesn't know.
    let (line, source) = ("-c -x assembler-with-cpp -o /dev/null -", ".struct 8\n");
    assert!(!ask(&place, line, source).status.success());
    let mut plan = plan();
    plan["held"] = json!(true);
    plan["rules"][0]["by_assembler"] = json!(true);
    place.plan(&plan);
    let output = ask(&place, line, source);
    assert!(output.status.success(), "{}", messages(&output));
}
