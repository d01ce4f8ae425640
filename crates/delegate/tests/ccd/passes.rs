//! Passes, each proven on an object before and after.

use serde_json::json;

use crate::kit::{KERNEL, Place, has_clang, messages, rule, with_rule};

/// Return the compilers that are installed.
fn compilers() -> Vec<&'static str> {
    if has_clang() { vec!["gcc", "clang"] } else { vec!["gcc"] }
}

/// Return the object of a source, without a pass and with it, as a tool shows both.
fn before_and_after(pass: &str, source: &str, words: &[&str], show: &dyn Fn(&Place) -> String) {
    for compiler in compilers() {
        let place = Place::new(&format!("{pass}-{compiler}"));
        place.write("a.c", source);
        place.plan(&with_rule(rule(compiler, true, &[])));
        place.compile(words);
        let before = show(&place);
        place.plan(&with_rule(rule(compiler, true, &[pass])));
        let record = place.compile(words);
        assert!(record["passes"][0]["changes"].as_u64().unwrap() > 0, "{record}");
        let after = show(&place);
        assert_ne!(before, after, "{compiler}");
        check(pass, &before, &after);
    }
}

fn check(pass: &str, before: &str, after: &str) {
    let symbol =
        |text: &str, kind: &str, name: &str| text.lines().any(|line| line.ends_with(&format!(" {kind} {name}")));
    match pass {
        "common" => {
            assert!(symbol(before, "C", "counter") && symbol(before, "C", "buffer"), "{before}");
            assert!(symbol(after, "B", "counter") && symbol(after, "B", "buffer"), "{after}");
            assert!(symbol(after, "b", "own") && symbol(after, "D", "set"), "{after}");
        }
        "used" => {
            for name in ["kept", "table", "recursive"] {
                assert!(!before.contains(name) && after.contains(name), "{name}: {before}\n{after}");
            }
            assert!(!after.contains("dropped"), "{after}");
        }
        other => panic!("nothing is known of the pass {other}"),
    }
}

#[test]
fn common_symbols_become_definitions_in_bss() {
    let source = "int counter; char buffer[100] __attribute__((aligned(64))); int set = 1; static int own;\n\
        int *f(void); int *f(void) { own++; return &own; }\n";
    before_and_after("common", source, &["-fcommon"], &|place| {
        let symbols = place.tool("nm", &["a.o"]);
        if symbols.contains(" B buffer") {
            let buffer = symbols.lines().find(|line| line.ends_with("buffer")).unwrap();
            assert_eq!(u64::from_str_radix(buffer.split(' ').next().unwrap(), 16).unwrap() % 64, 0);
            let sizes = place.tool("nm", &["-S", "a.o"]);
            assert!(sizes.contains(" 0000000000000064 B buffer"), "{sizes}");
        }
        symbols
    });
}

#[test]
fn what_is_only_used_survives_garbage_collection() {
    let source = "void entry(void); void dropped(void); int deep(int x);\n\
        static __attribute__((used)) int kept(void) { return 7; }\n\
        static __attribute__((used)) int table[4] = {1, 2};\n\
        static __attribute__((used, noinline)) int recursive(int x) { return x ? deep(recursive(x - 1)) * 3 : 0; }\n\
        static __attribute__((noinline)) int dropped_too(int x) { asm volatile(\"\"); return x; }\n\
        void dropped(void) { dropped_too(1); }\n\
        int deep(int x) { asm volatile(\"\"); return x; }\n\
        void entry(void) {}\n";
    before_and_after("used", source, &["-ffunction-sections", "-fdata-sections", "-g"], &|place| {
        place.tool("ld", &["--gc-sections", "-e", "entry", "-o", "linked", "a.o"]);
        place.tool("nm", &["linked"])
    });
}

#[test]
fn what_only_llvm_knows_is_dropped_and_gnu_as_takes_the_rest() {
    if !has_clang() {
        return;
    }
    let place = Place::new("foreign");
    for add in [&["-faddrsig"][..], &["-fbasic-block-address-map"]] {
        let mut rule = rule("clang", true, &[]);
        rule["add"] = json!(add);
        place.plan(&with_rule(rule.clone()));
        let output = place.ccd(&[&KERNEL[..], &["-c", "-o", "a.o", "a.c"]].concat());
        // It warns of types of sections that it doesn't know.
        assert!(!output.status.success() || messages(&output).contains("unrecognized section type"), "{add:?}");
        rule["passes"] = json!(["foreign"]);
        place.plan(&with_rule(rule));
        let output = place.ccd(&[&KERNEL[..], &["-c", "-o", "a.o", "a.c"]].concat());
        assert!(output.status.success() && output.stderr.is_empty(), "{}", messages(&output));
        assert!(place.records().pop().unwrap()["passes"][0]["changes"].as_u64().unwrap() > 0);
        let sections = place.tool("readelf", &["-SW", "a.o"]);
        assert!(!sections.contains("llvm") && sections.contains(".text"), "{sections}");
    }
}

#[test]
fn a_program_of_the_users_is_a_pass() {
    let place = Place::new("program");
    let mut plan = with_rule(rule("gcc", true, &["mine"]));
    plan["programs"]["mine"] = json!(["sed", "s/\\<f\\>/g/g"]);
    place.plan(&plan);
    assert_eq!(place.compile(&[])["passes"], json!([{"name": "mine", "changes": 1}]));
    let symbols = place.tool("nm", &["a.o"]);
    assert!(symbols.contains(" T g") && !symbols.contains(" T f"), "{symbols}");
    plan["programs"]["mine"] = json!(["cat"]);
    place.plan(&plan);
    assert_eq!(place.compile(&[])["passes"][0]["changes"], 0);
    for (command, why) in [
        (json!(["false"]), "a.c: the pass mine failed (rule 1)"),
        (json!(["true"]), "a.c: the pass mine wrote nothing (rule 1)"),
        (json!(["/no/such/program"]), "a.c: can't run /no/such/program: No such file or directory"),
    ] {
        plan["programs"]["mine"] = command;
        place.plan(&plan);
        let output = place.ccd(&[&KERNEL[..], &["-c", "-o", "a.o", "a.c"]].concat());
        assert_eq!(output.status.code(), Some(1));
        assert!(messages(&output).contains(why), "{}", messages(&output));
        assert!(!place.has("a.o") && place.litter().is_empty());
    }
}
