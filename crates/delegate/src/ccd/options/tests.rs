//! Each row is tried on the compilers that are installed here.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::*;
use crate::ccd::compile::Call;

/// A compiler to try rows on.
struct Compiler {
    program: &'static str,
    version: u32,
    directory: PathBuf,
}

impl Compiler {
    /// Return the first compiler of the family that is installed.
    fn of(family: Family) -> Option<Self> {
        let programs = match family {
            Family::Gcc => ["gcc-12", "gcc"],
            Family::Clang => ["clang-19", "clang"],
        };
        let (program, version) = programs.into_iter().find_map(|program| {
            let output = Command::new(program).arg("-dumpversion").output().ok()?;
            let version = String::from_utf8(output.stdout).ok()?;
            Some((program, version.trim().split('.').next()?.parse().ok()?))
        })?;
        let directory = std::env::temp_dir().join(format!("ccd-options-{program}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("x.c"), "int f(int a);\nint f(int a)\n{\n\treturn a + 1;\n}\n").unwrap();
        Some(Self { program, version, directory })
    }

    /// Return the compiler's objection to options; None if it accepts them silently.
    fn objection(&self, options: &[OsString]) -> Option<String> {
        let output = Command::new(self.program)
            .current_dir(&self.directory)
            .args(["-O2", "-fno-PIE", "-c", "x.c", "-o", "x.o"])
            .args(options)
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        (!output.status.success() || !message.is_empty()).then_some(message)
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.directory).unwrap();
    }
}

/// Return an option that a row is about, in words.
fn example(row: &Row) -> Vec<OsString> {
    format!("{}{}", row.option, row.example.unwrap_or_default()).split(' ').map(OsString::from).collect()
}

fn try_rows(family: Family) {
    let Some(compiler) = Compiler::of(family) else {
        println!("not tried: no compiler of this family is installed");
        return;
    };
    let mut wrong = Vec::new();
    for row in rows(family) {
        let option = example(row);
        let beside: Vec<OsString> = row.beside.iter().map(OsString::from).collect();
        let given = row.replacement(&option.join(OsStr::new(" ")));
        let accepted = given.clone().unwrap_or(option.clone());
        if compiler.version >= row.since {
            let objection = compiler.objection(&[&beside[..], &accepted].concat());
            wrong.extend(objection.map(|message| format!("{accepted:?}: {message}")));
        }
        if given.is_some() && compiler.objection(&[&beside[..], &option].concat()).is_none() {
            wrong.push(format!("{option:?}: {} takes it as it is", compiler.program));
        }
    }
    let additional: Vec<OsString> = additional(family).iter().map(OsString::from).collect();
    wrong.extend(compiler.objection(&additional).map(|message| format!("{additional:?}: {message}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn clang_takes_what_the_rows_give_and_refuses_what_they_change() {
    try_rows(Family::Clang);
}

#[test]
fn gcc_takes_what_the_rows_give_and_refuses_what_they_change() {
    try_rows(Family::Gcc);
}

#[test]
fn no_row_hides_another() {
    for family in [Family::Gcc, Family::Clang] {
        for (index, row) in rows(family).enumerate() {
            let option = example(row).join(OsStr::new(" "));
            let first = rows(family).position(|row| row.is_about(option.as_bytes()));
            assert_eq!(first, Some(index), "{option:?}");
        }
    }
}

fn words(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

#[test]
fn a_call_is_translated_and_its_changes_are_on_record() {
    let call = Call::read(&words("-fconserve-stack -mpreferred-stack-boundary=3 --param asan-stack=0 -c a.c -o a.o"));
    let translation = translated(&call.items, Family::Clang).unwrap();
    let additional = to_clang::ADDITIONAL.join(" ");
    assert_eq!(
        crate::ccd::compile::words(&translation.items),
        words(&format!("-mstack-alignment=8 -mllvm -asan-stack=0 -c a.c -o a.o {additional}"))
    );
    assert_eq!(
        translation.changes,
        [
            ("-fconserve-stack", ""),
            ("-mpreferred-stack-boundary=3", "-mstack-alignment=8"),
            ("--param asan-stack=0", "-mllvm -asan-stack=0")
        ]
        .map(|(option, by)| (option.to_owned(), by.to_owned()))
    );
}

#[test]
fn an_option_without_a_row_is_named() {
    let call = Call::read(&words("-O2 -fplugin=x.so -c a.c"));
    assert_eq!(translated(&call.items, Family::Clang), Err("-fplugin=x.so".into()));
}

#[test]
fn the_manual_has_the_table() {
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/delegation.md");
    let manual = fs::read_to_string(manual).unwrap();
    let unwrapped = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped(&manual).contains(&unwrapped(&table())), "put there what `kdyno-delegate options` prints");
}
