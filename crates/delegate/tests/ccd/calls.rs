//! What ccd makes of calls: not a compile, passed through, rewritten.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use serde_json::json;

use crate::kit::{KERNEL, Place, messages, plan, rule, with_rule};

/// Writes its arguments, one a line, into `words`.
const ECHO: &str = "printf '%s\\n' \"$@\" > words";

/// Return a place whose reference compiler only writes down how it was called.
fn place(name: &str) -> Place {
    let place = Place::new(name);
    let mut plan = plan();
    plan["compilers"]["gcc"]["command"] = place.script("echo.sh", ECHO);
    place.plan(&plan);
    place
}

#[test]
fn what_is_no_compile_goes_to_the_reference_unchanged_and_leaves_no_record() {
    let place = place("not-a-compile");
    for line in [
        "--version",
        "-v",
        "-print-file-name=plugin",
        "-dumpversion",
        "-E -P -x c -",
        "-c -x c /dev/null -o x.o",
        "-c -o /dev/null a.c",
        "-c -x c -",
        "-S -o a.s a.c",
        "-M a.c",
        "-fsyntax-only -c a.c",
        "-o program a.c",
        "-c a.c b.c",
        "-### -c a.c -o a.o",
        "-c -o",
        "@a @/dev/zero",
        "",
    ] {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let output = place.ccd(&words);
        assert!(output.status.success(), "{line}: {}", messages(&output));
        let expected = if words.is_empty() { "\n".to_owned() } else { words.join("\n") + "\n" };
        assert_eq!(String::from_utf8(place.read("words")).unwrap(), expected);
    }
    assert!(place.records().is_empty());
}

#[test]
fn a_compile_that_no_rule_is_for_passes_through_with_its_reason() {
    let place = place("passed");
    let mut plan = plan();
    plan["compilers"]["gcc"]["command"] = json!(["sh", place.file("echo.sh")]);
    plan["rules"][0]["files"] = json!(["kernel/*.c"]);
    place.plan(&plan);
    let kernel = KERNEL.join(" ");
    for (line, reason) in [
        (format!("{kernel} -c -o a.o a.c"), "no rule chose it"),
        (format!("{kernel} -c -o a.o kernel/sched/core.c"), "no rule chose it"),
        (format!("{kernel} -c -o a.o kernel/a.S"), "assembly code"),
        (format!("{kernel} -x assembler-with-cpp -c -o a.o kernel/a.c"), "assembly code"),
        (format!("{kernel} -fPIC -c -o a.o kernel/a.c"), "not code of the running kernel"),
        (format!("{kernel} -mcmodel=small -c -o a.o kernel/a.c"), "not code of the running kernel"),
        ("-m16 -D__KERNEL__ -c -o a.o kernel/a.c".to_owned(), "not code of the running kernel"),
        (format!("{kernel} -c -o a.o kernel/a.cc"), "not code of the running kernel"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        assert!(place.ccd(&words).status.success());
        assert_eq!(String::from_utf8(place.read("words")).unwrap(), words.join("\n") + "\n");
        let record = place.records().pop().unwrap();
        assert_eq!(record["answer"], "passed");
        assert_eq!(record["reason"], reason, "{line}");
        assert_eq!(record["object"], "a.o");
        assert_eq!(record["rule"], json!(null));
        assert_eq!(record["seconds"], json!(null));
    }
}

#[test]
fn a_rule_that_changes_nothing_passes_calls_through() {
    let place = Place::new("idle");
    place.plan(&with_rule(rule("gcc", false, &[])));
    assert_eq!(place.compile(&[])["reason"], "the rule leaves it as it is");
}

#[test]
fn a_launcher_stands_before_compilers_that_compile_and_not_before_questions() {
    let place = place("launcher");
    place.write("launch.sh", "echo \"$@\" > launched; exec \"$@\"");
    let launcher = format!("sh {}", place.file("launch.sh").display());
    let call = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        assert!(place.command(&words).env("KDYNO_LAUNCHER", &launcher).status().unwrap().success());
    };
    call("--version");
    assert!(!place.has("launched"));
    call("-c -o a.o a.c");
    assert!(String::from_utf8(place.read("launched")).unwrap().ends_with("-c -o a.o a.c\n"));
}

#[test]
fn any_bytes_in_words_and_paths_arrive_as_they_are() {
    let place = place("bytes");
    let odd = OsString::from_vec(b"sp ace/\xff\xfe'\"\\.c".to_vec());
    let words = [OsString::from("-c"), "-DX=\"a b\"".into(), "-o".into(), OsString::from_vec(b"\x80.o".to_vec()), odd];
    assert!(place.ccd(&words).status.success());
    let expected: Vec<u8> = words.iter().flat_map(|word| [word.clone().into_vec(), vec![b'\n']].concat()).collect();
    assert_eq!(place.read("words"), expected);
}

#[test]
fn a_plan_that_makes_no_sense_is_refused() {
    let place = Place::new("plans");
    let refused = |change: &dyn Fn(&mut serde_json::Value), part: &str| {
        let mut plan = plan();
        change(&mut plan);
        place.plan(&plan);
        let output = place.ccd(&["--version"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(messages(&output).starts_with("ccd: error: the delegation plan "), "{}", messages(&output));
        assert!(messages(&output).contains(part), "{}", messages(&output));
    };
    refused(&|plan| plan["format"] = json!(2), "format 2, and this ccd reads 3");
    refused(&|plan| plan["reference"] = json!("icc"), "icc is not among its compilers");
    refused(&|plan| plan["rules"][0]["compiler"] = json!("icc"), "rule 1: icc is not among its compilers");
    refused(&|plan| plan["rules"][0]["pases"] = json!([]), "unknown field `pases`");
    refused(&|plan| plan["rules"][0]["passes"] = json!(["mend"]), "rule 1: no pass is called mend");
    refused(&|plan| plan["rules"][0]["passes"] = json!(["used"]), "rule 1: passes need by_assembler");
    refused(&|plan| plan["rules"][0]["files"] = json!(["a**"]), "rule 1: a**: ");
    refused(&|plan| plan["compilers"]["gcc"]["command"] = json!([]), "the compiler gcc has no command");
    refused(&|plan| plan["assembler"] = json!([]), "the assembler has no command");
    place.write("plan.json", b"\xff");
    assert!(messages(&place.ccd(&["--version"])).contains("plan.json: "));
    let output = place.command(&["--version"]).env_remove("KDYNO_DELEGATION").output().unwrap();
    assert!(messages(&output).contains("KDYNO_DELEGATION is not set"));
}
