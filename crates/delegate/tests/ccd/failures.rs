//! What can go wrong: a clear message, no object, nothing left behind.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kit::{KERNEL, Place, messages, rule, with_clang, with_rule};

fn call() -> Vec<&'static str> {
    [&KERNEL[..], &["-c", "-o", "a.o", "a.c"]].concat()
}

/// Make a call that must fail, and return its messages, after looking at what it left.
fn failed(place: &Place) -> String {
    place.write("a.o", "an object of before");
    let output = place.ccd(&call());
    assert_eq!(output.status.code(), Some(1), "{}", messages(&output));
    assert!(!place.has("a.o"), "an object is left");
    assert!(place.litter().is_empty(), "{:?}", place.litter());
    assert!(place.records().is_empty());
    messages(&output)
}

#[test]
fn a_compiler_that_fails_or_is_killed_leaves_no_object() {
    let place = Place::new("failing");
    for by_assembler in [false, true] {
        for (script, message) in [
            ("echo 'a.c:1: error: no' >&2; exit 1", "a.c:1: error: no\nccd: error: a.c: clang failed (rule 1)\n"),
            ("echo half > a.o; kill -9 $$", "ccd: error: a.c: clang was killed by signal 9 (rule 1)\n"),
        ] {
            let mut plan = with_clang(place.script("clang.sh", script));
            plan["rules"][0]["by_assembler"] = json!(by_assembler);
            place.plan(&plan);
            assert_eq!(failed(&place), message);
        }
    }
}

#[test]
fn text_that_gnu_as_refuses_leaves_no_object() {
    let place = Place::new("refused");
    place.plan(&with_rule(rule("gcc", true, &[])));
    place.write("a.c", "void f(void);\nvoid f(void) { asm(\"nonsense\"); }\n");
    let message = failed(&place);
    assert!(message.contains("no such instruction: `nonsense'"), "{message}");
    assert!(message.ends_with("ccd: error: a.c: as failed (rule 1)\n"), "{message}");
}

#[test]
fn a_file_that_fails_goes_to_the_reference_if_the_plan_allows_it() {
    let place = Place::new("fallback");
    let mut plan = with_clang(place.script("clang.sh", "exit 1"));
    plan["fallback"] = json!(true);
    place.plan(&plan);
    let output = place.ccd(&call());
    assert!(output.status.success());
    assert_eq!(messages(&output), "ccd: warning: a.c: clang failed (rule 1); the reference compiles it\n");
    assert!(place.has("a.o"));
    let record = place.records().pop().unwrap();
    assert_eq!(record["answer"], "fallback");
    assert_eq!(record["reason"], "a.c: clang failed (rule 1)");
    assert_eq!((&record["rule"], &record["compiler"]), (&json!("rule 1"), &json!("gcc")));
}

#[test]
fn an_option_that_the_table_does_not_know_is_an_error_with_the_way_out() {
    let place = Place::new("unknown");
    let output = place.ccd(&[&call()[..], &["-fno-such-thing"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let expected = "ccd: error: a.c: ccd doesn't know what -fno-such-thing is for clang; \
        remove = [\"-fno-such-thing\"] in the rule leaves it out, or choose another compiler for the file (rule 1)\n";
    assert_eq!(messages(&output), expected);
}

#[test]
fn a_record_that_cannot_be_written_is_an_error() {
    let place = Place::new("records");
    place.plan(&with_rule(rule("gcc", true, &[])));
    let output = place.command(&call()).env("KDYNO_RECORDS", "/dev/full").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(messages(&output).contains("can't write a record to /dev/full: No space left on device"));
    assert!(!place.has("a.o"));
}

/// Return a rule that goes by way of assembler with a pass that changes nothing of this text.
fn with_pass(program: Value) -> Value {
    let mut plan = with_rule(rule("gcc", true, &["mine"]));
    plan["programs"]["mine"] = program;
    plan
}

#[test]
fn a_full_disk_is_an_error_and_no_half_of_an_object_is_left() {
    let place = Place::new("full");
    std::fs::create_dir(place.file("small")).unwrap();
    let numbers: Vec<String> = (1..20_000).map(|number| number.to_string()).collect();
    place.write("a.c", format!("int numbers[] = {{ {} }};\n", numbers.join(",")));
    // A file system in memory, in a name space of its own: what is left on it is listed before it goes away.
    let script = "mount -t tmpfs -o size=32k none small || exit 77; \"$@\"; status=$?; ls -A small; exit $status";
    for (tmpdir, object, message) in [("small", "a.o", "No space left on device"), ("tmp", "small/a.o", "small/.ccd-")]
    {
        place.plan(&with_pass(json!(["cat"])));
        let mut words = call();
        *words.iter_mut().find(|word| **word == "a.o").unwrap() = object;
        let made = place.command(&words);
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
        command.arg(made.get_program()).args(made.get_args()).current_dir(&place.path);
        command
            .envs(made.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("TMPDIR", place.file(tmpdir));
        let output = command.output().unwrap();
        if output.status.code() == Some(77) || messages(&output).starts_with("unshare: ") {
            println!("not tried: no file system can be mounted here: {}", messages(&output));
            return;
        }
        assert_eq!(output.status.code(), Some(1), "{}", messages(&output));
        assert!(messages(&output).contains(message), "{}", messages(&output));
        assert!(messages(&output).contains("failed (rule 1)"), "{}", messages(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "left on the disk");
        assert!(!place.has("a.o"));
    }
}

#[test]
fn a_signal_ends_the_compiler_and_then_ccd_and_nothing_is_left() {
    let place = Place::new("signal");
    for (by_assembler, name, number) in [(true, "-INT", 2), (false, "-TERM", 15)] {
        // The compiler writes something, says who it is, and takes its time.
        let script = "echo half > a.o; for word; do case \"$word\" in *.s) echo half > \"$word\";; esac; done\n\
            echo $$ > pid.new; mv pid.new pid; exec sleep 100";
        let mut plan = with_clang(place.script("clang.sh", script));
        plan["rules"][0]["by_assembler"] = json!(by_assembler);
        place.plan(&plan);
        let mut ccd = place.command(&call()).stdin(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !place.has("pid") {
            assert!(Instant::now() < deadline, "the compiler doesn't start");
            sleep(Duration::from_millis(5));
        }
        let compiler = String::from_utf8(place.read("pid")).unwrap();
        std::fs::remove_file(place.file("pid")).unwrap();
        assert!(Command::new("kill").args([name, &ccd.id().to_string()]).status().unwrap().success());
        let status = ccd.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(number));
        assert!(!std::path::Path::new("/proc").join(compiler.trim()).exists(), "the compiler lives on");
        assert!(!place.has("a.o") && place.litter().is_empty(), "{:?}", place.litter());
    }
}

#[test]
fn a_reader_of_the_options_that_goes_away_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_kdyno-delegate"))
        .arg("options")
        .stdout(writer)
        .stderr(Stdio::piped())
        .output();
    let output = output.unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
