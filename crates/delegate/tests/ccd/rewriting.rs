//! Compiles by the compiler of a rule.

use serde_json::json;

use crate::kit::{KERNEL, Place, has_clang, messages, plan, rule, with_clang, with_rule};

#[test]
fn a_rule_chooses_compiler_and_options_and_the_record_says_so() {
    if !has_clang() {
        return;
    }
    let place = Place::new("rewritten");
    let mut plan = plan();
    plan["rules"][0]["add"] = json!(["-O3"]);
    plan["rules"][0]["remove"] = json!(["-fplugin=x.so"]);
    place.plan(&plan);
    let record = place.compile(&["-fplugin=x.so", "-mpreferred-stack-boundary=3", "-fconserve-stack"]);
    assert!(place.tool("readelf", &["-p", ".comment", "a.o"]).contains("clang"));
    assert!(record["seconds"].as_f64().unwrap() > 0.0);
    let expected = json!({
        "object": "a.o", "source": "a.c", "answer": "rewritten", "rule": "rule 1", "compiler": "clang",
        "added": ["-O3"], "removed": ["-fplugin=x.so"],
        "translated": [["-mpreferred-stack-boundary=3", "-mstack-alignment=8"], ["-fconserve-stack", ""]],
        "by_assembler": false, "passes": [], "profiles": [], "notes": [], "findings": [], "seconds": record["seconds"],
    });
    assert_eq!(record, expected);
}

#[test]
fn by_way_of_assembler_gcc_makes_the_object_that_it_makes_directly() {
    let place = Place::new("same");
    place.write(
        "a b.c",
        "static int x; int *f(void);\nint *f(void)\n{\n\tasm(\"# %0\" :: \"r\"(x));\n\treturn &x;\n}\n",
    );
    let lines = ["-g", "-gdwarf-4 -g1", "-g0", "-ffunction-sections -gz=zlib", "-Wa,--noexecstack,-L -I. -I ."];
    for line in lines {
        for by_assembler in [false, true] {
            place.plan(&with_rule(rule("gcc", by_assembler, &[])));
            let more: Vec<&str> = line.split(' ').collect();
            let output = place.ccd(&[&KERNEL[..], &more, &["-Wp,-MMD,a b.d", "-c", "-o", "a b.o", "a b.c"]].concat());
            assert!(output.status.success(), "{}", messages(&output));
            for name in ["a b.o", "a b.d"] {
                let other = format!("direct {name}");
                if by_assembler {
                    assert!(place.read(name) == place.read(other), "{name}: {line}");
                } else {
                    place.write(other, place.read(name));
                }
            }
        }
    }
    assert_eq!(place.records().pop().unwrap()["by_assembler"], true);
    assert!(place.litter().is_empty());
}

#[test]
fn dependency_files_are_the_same_by_way_of_assembler() {
    let place = Place::new("dependencies");
    place.write("a.h", "");
    place.write("a.c", "#include \"a.h\"\nint x;\n");
    for compiler in ["gcc", "clang"] {
        if compiler == "clang" && !has_clang() {
            return;
        }
        let ways = [&["-Wp,-MMD,a.d"][..], &["-MD"], &["-MMD", "-MF", "a.d"], &["-MD", "-MT", "b", "-MF", "a.d"]];
        for words in ways {
            // A rule that adds nothing leaves the reference's calls as they are.
            let dependencies = [false, true].map(|by_assembler| {
                place.plan(&with_rule(rule(compiler, by_assembler, &[])));
                place.compile(words);
                String::from_utf8(place.read("a.d")).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
            });
            assert_eq!(dependencies[0], dependencies[1], "{compiler} {words:?}");
        }
    }
}

#[test]
fn the_text_is_kept_if_the_plan_says_so() {
    let place = Place::new("kept");
    let mut plan = with_rule(rule("gcc", true, &[]));
    plan["assem"] = json!(true);
    place.plan(&plan);
    place.compile(&[]);
    assert!(String::from_utf8(place.read("a.c.S")).unwrap().contains("f:\n"));
    place.tool("as", &["--64", "-o", "again.o", "a.c.S"]);
    assert!(place.read("again.o") == place.read("a.o"));
}

#[test]
fn split_debugging_information_and_counters_do_not_go_by_way_of_assembler() {
    let place = Place::new("split");
    place.plan(&with_rule(rule("gcc", true, &[])));
    for (words, other_file) in [(["-g", "-gsplit-dwarf"], "a.dwo"), (["-fprofile-arcs", "-ftest-coverage"], "a.gcno")] {
        let record = place.compile(&words);
        assert_eq!(record["by_assembler"], false);
        assert!(record["notes"][0].as_str().unwrap().starts_with("not by way of assembler: -"), "{record}");
        assert!(place.has(other_file));
    }
}

#[test]
fn words_in_response_files_are_understood_and_go_on_in_one() {
    let place = Place::new("response");
    place.plan(&with_clang(
        place.script("clang.sh", "case \"$1\" in @*) cat \"${1#@}\" > words; : > a.o;; *) exit 9;; esac"),
    ));
    place.write("list", format!("{} -DA='x y' -fconserve-stack\n-c a.c -o a.o", KERNEL.join("\n")));
    let output = place.ccd(&["@list"]);
    assert!(output.status.success(), "{}", messages(&output));
    let words = String::from_utf8(place.read("words")).unwrap();
    assert!(words.contains("\"-DA=x y\"\n\"-c\"\n\"a.c\"\n"), "{words}");
    assert!(place.litter().is_empty());
}

#[test]
fn a_very_long_command_line_is_compiled() {
    let place = Place::new("long");
    place.plan(&with_rule(rule("gcc", true, &[])));
    let definitions: Vec<String> = (0..3_000).map(|number| format!("-DNAME_OF_NUMBER_{number}={number}")).collect();
    let more: Vec<&str> = definitions.iter().map(String::as_str).collect();
    assert_eq!(place.compile(&more)["answer"], "rewritten");
}

#[test]
fn clang_by_way_of_assembler_leaves_inline_assembler_and_llvms_sections_to_gnu_as() {
    if !has_clang() {
        return;
    }
    let place = Place::new("clang");
    place.write(
        "a.c",
        "int f(int *x);\nint f(int *x)\n{\n\tasm(\".ifdef nothing; nonsense; .endif; nop\");\n\treturn *x;\n}\n",
    );
    place.plan(&with_rule(rule("clang", false, &[])));
    place.compile(&[]);
    assert!(place.tool("readelf", &["-SW", "a.o"]).contains(".llvm_addrsig"));
    place.plan(&with_rule(rule("clang", true, &["foreign"])));
    place.compile(&[]);
    assert!(!place.tool("readelf", &["-SW", "a.o"]).contains("llvm"));
    assert!(place.tool("objdump", &["-d", "a.o"]).contains("nop"));
    assert!(place.litter().is_empty());
}

#[test]
fn a_source_is_compiled_by_the_part_of_a_profile_that_is_about_it() {
    if !has_clang() {
        return;
    }
    let place = Place::new("profiled");
    let mut plan = plan();
    plan["reference"] = json!("clang");
    plan["rules"] = json!([]);
    plan["profiles"] = json!([{
        "name": "autofdo", "file": "profile", "family": "clang", "option": "-fprofile-sample-use=",
        "add": ["-mllvm", "-profile-summary-hot-count=100"],
    }]);
    place.plan(&plan);
    place.write("profile", "# file b.c\ng:9:9\n 1: 9\n# file a.c b.c\nf:9000:900\n 2: 900\n");
    let record = place.compile(&["-g1", "-fdebug-info-for-profiling"]);
    assert_eq!(record["profiles"], json!(["autofdo"]));
    assert!(place.tool("readelf", &["-SW", "a.o"]).contains(".text.hot."));
    let parts: Vec<_> = std::fs::read_dir(place.file(".kdyno-profiles")).unwrap().map(|entry| entry.unwrap()).collect();
    let [part] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!(std::fs::read_to_string(part.path()).unwrap(), "f:9000:900\n 2: 900\n");

    place.compile(&["-g1", "-fdebug-info-for-profiling", "-flto=thin"]);
    let parts = std::fs::read_dir(place.file(".kdyno-profiles")).unwrap().count();
    assert_eq!(parts, 1, "where the link compiles, all objects get the same file");

    place.write("profile", "# file b.c\nf:9000:900\n 2: 900\n");
    assert_eq!(place.compile(&["-g1"])["profiles"], json!([]));
    assert!(!place.tool("readelf", &["-SW", "a.o"]).contains(".text.hot."), "no profile is about it");

    std::fs::remove_file(place.file("profile")).unwrap();
    let output = place.ccd(&[&KERNEL[..], &["-c", "-o", "a.o", "a.c"]].concat());
    assert!(!output.status.success() && messages(&output).contains("can't read profile"), "{}", messages(&output));
}

#[test]
fn an_object_is_compiled_by_what_gcc_counted_in_it() {
    let place = Place::new("counted");
    let mut plan = plan();
    plan["rules"] = json!([]);
    plan["profiles"] = json!([{
        "name": "pgo", "file": "profile", "family": "gcc", "cut": "objects", "option": "-fprofile-use=",
        "add": ["-Wno-missing-profile"],
    }]);
    place.plan(&plan);
    place.write("a.c", "int often(int x) { return x * 3; }\nint once(int x) { return x * 5; }\n");
    place.write(
        "main.c",
        "int often(int), once(int);\nint main(void) {\n  int sum = once(1);\n\
         for (int i = 0; i < 1000000; i++) sum += often(i);\n  return sum == 42;\n}\n",
    );
    place.tool("gcc", &["-O2", "-fprofile-arcs", "-c", "-o", "a.o", "a.c"]);
    place.tool("gcc", &["-O2", "-fprofile-arcs", "-o", "main", "main.c", "a.o"]);
    place.tool("./main", &[]);
    let digits: String = place.read("a.gcda").iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::remove_file(place.file("a.gcda")).unwrap();
    place.write("profile", format!("# object b.o\n00\n# object a.o\n{digits}\n"));

    let record = place.compile(&["-ffunction-sections"]);
    assert_eq!(record["profiles"], json!(["pgo"]));
    let sections = place.tool("readelf", &["-SW", "a.o"]);
    assert!(sections.contains(".text.hot.often") && sections.contains(".text.once"), "{sections}");

    place.write("profile", "# object b.o\n00\n");
    assert_eq!(place.compile(&["-ffunction-sections"])["profiles"], json!([]));
    assert!(!place.tool("readelf", &["-SW", "a.o"]).contains(".text.hot."), "no counters are of it");

    place.write("profile", "# object a.o\nsomething else\n");
    let output = place.ccd(&[&KERNEL[..], &["-c", "-o", "a.o", "a.c"]].concat());
    assert!(!output.status.success() && messages(&output).contains("no counters for a.o"), "{}", messages(&output));
}
