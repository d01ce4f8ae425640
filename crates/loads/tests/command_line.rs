//! What a caller sees: exit codes, one line of JSON, and what takes several processes.

use serde_json::Value;
use std::process::{Command, Output};

fn loads(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kdyno-loads")).args(line.split_whitespace()).output().unwrap()
}

fn outcome(line: &str) -> Value {
    let output = loads(&format!("{line} --json"));
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    let stdout = text(&output.stdout);
    assert_eq!(stdout.lines().count(), 1);
    serde_json::from_str(&stdout).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn metric<'a>(outcome: &'a Value, name: &str) -> &'a Value {
    let metrics = outcome["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("no {name} in {outcome}"))
}

fn first_value(outcome: &Value, name: &str) -> f64 {
    metric(outcome, name)["values"][0].as_f64().unwrap()
}

#[test]
fn a_mistake_is_one_line_on_stderr_with_a_hint_and_exit_code_64() {
    let output = loads("matmull");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(64), ""));
    let expected = "kdyno-loads: there is no load 'matmull'; `kdyno-loads --help` lists what there is\n";
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn help_and_version_go_to_stdout() {
    for (line, expected) in [("--help", "usage:"), ("--version", "kdyno-loads 0."), ("sieve --help", "mandelbrot")] {
        let output = loads(line);
        assert!(output.status.success() && text(&output.stdout).contains(expected), "{line}");
    }
}

#[test]
fn without_json_a_person_can_read_it() {
    let stdout = text(&loads("matmul --size 20 --repeat 2").stdout);
    assert!(stdout.starts_with("matmul size=20 threads=1 advise=nothing repeat=2\n  rate "), "{stdout}");
    assert!(stdout.contains(" MFLOPS (") && stdout.ends_with("  the result is verified\n"), "{stdout}");
}

#[test]
fn every_metric_has_a_value_of_each_repetition() {
    let outcome = outcome("sieve --bytes 10000 --repeat 3");
    assert_eq!(metric(&outcome, "seconds")["values"].as_array().unwrap().len(), 3);
    assert_eq!((&outcome["parameters"]["repeat"], &outcome["facts"]["primes"]), (&3.into(), &1229.into()));
}

#[test]
fn processes_are_timed_one_by_one_and_together() {
    for load in ["sieve --bytes 1M", "mandelbrot --size 64 --iterations 100 --threads 2"] {
        let outcome = outcome(&format!("{load} --processes 3 --repeat 2"));
        let names: Vec<_> =
            outcome["metrics"].as_array().unwrap().iter().map(|metric| metric["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["seconds", "seconds.process1", "seconds.process2", "seconds.process3"]);
        let of_all = first_value(&outcome, "seconds");
        assert!((1..=3).all(|process| first_value(&outcome, &format!("seconds.process{process}")) <= of_all));
        assert_eq!(outcome["verified"], true);
    }
}

#[test]
#[cfg_attr(sanitized, ignore = "AddressSanitizer itself needs more addresses than the limit leaves")]
fn memory_that_cannot_be_had_in_a_process_is_one_message_and_nobody_waits() {
    // 64 GB for each of 3 is more than the limit on addresses.
    let line = format!("ulimit -v 8000000; exec {} sieve --bytes 64G --processes 3", env!("CARGO_BIN_EXE_kdyno-loads"));
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.starts_with("kdyno-loads: can't map") && stderr.contains("--bytes"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1);
}

#[test]
fn faults_are_counted_and_large_pages_need_fewer_of_them() {
    let small = outcome("fault --bytes 16M --advise nohuge");
    let pages = small["facts"]["pages"].as_f64().unwrap();
    assert_eq!(pages * small["facts"]["page_bytes"].as_f64().unwrap(), f64::from(16 << 20));
    let faults = first_value(&small, "faults");
    assert!(faults > 0.0 && first_value(&small, "copy_faults") > 0.0, "{small}");
    if let Some(memory) = small["memory"].as_object() {
        assert!(memory["anonymous"].as_u64().unwrap() >= 16 << 20);
        assert_eq!(memory["anon_huge_pages"], 0);
    }
    let has_large = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if has_large.is_ok_and(|text| !text.contains("[never]")) {
        let large = outcome("fault --bytes 16M --advise huge");
        assert!(first_value(&large, "faults") < faults, "{large}");
        assert!(first_value(&large, "sparse_resident") > first_value(&small, "sparse_resident"), "{large}");
    }
}

#[test]
fn large_pages_are_counted_by_size_or_said_to_be_unknown() {
    let large = outcome("fault --bytes 16M --advise huge");
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if let Some(sizes) = large["large_pages"].as_array()
        && enabled.contains("[always]") | enabled.contains("[madvise]")
    {
        let huge = sizes.iter().find(|of| of["size_kb"] == 2048).unwrap_or_else(|| panic!("no 2 MB in {large}"));
        let number = |name: &str| huge["timed"][name].as_u64().unwrap();
        assert!(number("faults") + number("fallbacks") >= 7, "{large}");
        let text = text(&loads("fault --bytes 16M --advise huge").stdout);
        assert!(text.contains("  pages of 2048 kB ") && text.contains(" fell back; before: "), "{text}");
    }
    assert!(outcome("sieve --bytes 10000 --processes 2")["large_pages"].is_null());
}

#[test]
fn large_pages_are_what_an_array_gets_that_asks_for_them() {
    let has_large = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if has_large.is_ok_and(|text| !text.contains("[never]")) {
        let huge =
            |advice| outcome(&format!("sieve --bytes 16M --advise {advice}"))["memory"]["anon_huge_pages"].clone();
        assert!(huge("huge").as_u64().is_none_or(|bytes| bytes >= 8 << 20));
        assert!(huge("nohuge").as_u64().is_none_or(|bytes| bytes == 0));
    }
}

#[test]
fn the_library_compiles_without_a_warning_and_computes_what_it_should() {
    let directory = std::env::temp_dir().join(format!("kdyno-loads-compiled.{}", std::process::id()));
    let written = outcome(&format!("sources --directory {} --count 20", directory.display()));
    let make = |words: &str| Command::new("make").arg("-sC").arg(&directory).args(words.split(' ')).output().unwrap();
    let check = || Command::new(directory.join("check")).output().unwrap();
    let made = make("check PIPE=-pipe");
    assert!(made.status.success() && made.stderr.is_empty(), "{}", text(&made.stderr)); // -Wall -Wextra -Werror
    let checked = check();
    assert!(checked.status.success());
    assert_eq!(written["facts"]["checksum"], text(&checked.stdout).trim());
    let part = directory.join("part7.c");
    std::fs::write(&part, std::fs::read_to_string(&part).unwrap().replacen("x ^= x >> ", "x ^= x << ", 1)).unwrap();
    assert!(make("check").status.success());
    assert_eq!(check().status.code(), Some(1));
    std::fs::remove_dir_all(&directory).unwrap();
}
