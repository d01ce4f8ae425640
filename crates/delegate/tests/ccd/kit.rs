//! A directory in which ccd is called, and what it leaves there.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// The words by which code is the kernel's.
pub const KERNEL: [&str; 4] = ["-D__KERNEL__", "-mcmodel=kernel", "-fno-PIE", "-O2"];

/// A directory with ccd in it, which is removed with its value. Temporary files go to `tmp` in it.
pub struct Place {
    pub path: PathBuf,
}

impl Place {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ccd-test-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("tmp")).unwrap();
        symlink(env!("CARGO_BIN_EXE_kdyno-delegate"), path.join("ccd")).unwrap();
        let place = Self { path };
        place.plan(&plan());
        place.write("a.c", "int f(int x);\nint f(int x)\n{\n\treturn x + 1;\n}\n");
        place
    }

    pub fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        fs::write(self.file(name), content).unwrap();
    }

    pub fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        fs::read(self.file(name)).unwrap()
    }

    pub fn has(&self, name: impl AsRef<Path>) -> bool {
        self.file(name).exists()
    }

    pub fn plan(&self, plan: &Value) {
        self.write("plan.json", plan.to_string());
    }

    /// Write a shell script that takes the place of a compiler.
    pub fn script(&self, name: &str, content: &str) -> Value {
        self.write(name, content);
        json!(["sh", self.file(name)])
    }

    pub fn command(&self, words: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(self.file("ccd"));
        command
            .args(words)
            .current_dir(&self.path)
            .env("KDYNO_DELEGATION", self.file("plan.json"))
            .env("KDYNO_RECORDS", self.file("records"))
            .env("TMPDIR", self.file("tmp"))
            .env("srctree", ".")
            .env_remove("KDYNO_LAUNCHER");
        command
    }

    /// Call ccd.
    pub fn ccd(&self, words: &[impl AsRef<OsStr>]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Compile a.c into a.o as code of the kernel, with more words; it has to succeed.
    pub fn compile(&self, more: &[&str]) -> Value {
        let output = self.ccd(&[&KERNEL[..], more, &["-c", "-o", "a.o", "a.c"]].concat());
        assert!(output.status.success(), "{}", messages(&output));
        self.records().pop().unwrap()
    }

    pub fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.file("records")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Return the files that ccd has not removed.
    pub fn litter(&self) -> Vec<String> {
        let names = |path: &Path| -> Vec<String> {
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
        };
        let beside = names(&self.path).into_iter().filter(|name| name.starts_with(".ccd"));
        beside.chain(names(&self.file("tmp"))).collect()
    }

    /// Return what another tool prints about files here.
    pub fn tool(&self, program: &str, words: &[&str]) -> String {
        let output = Command::new(program).args(words).current_dir(&self.path).output().unwrap();
        assert!(output.status.success(), "{program} {words:?}: {}", messages(&output));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).unwrap();
    }
}

pub fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Return a plan with gcc 12 and clang 19, and a rule that compiles all with clang.
pub fn plan() -> Value {
    json!({
        "format": 3,
        "reference": "gcc",
        "compilers": {
            "gcc": {"family": "gcc", "command": [installed(&["gcc-12", "gcc"])]},
            "clang": {"family": "clang", "command": [installed(&["clang-19", "clang"]).unwrap_or("clang")]},
        },
        "assembler": ["as"],
        "held": false,
        "fallback": false,
        "assem": false,
        "programs": {},
        "rules": [rule("clang", false, &[])],
    })
}

/// Return a rule about all sources.
pub fn rule(compiler: &str, by_assembler: bool, passes: &[&str]) -> Value {
    json!({
        "name": "rule 1", "files": ["**"], "compiler": compiler, "add": [], "remove": [], "by_assembler": by_assembler,
        "passes": passes,
    })
}

/// Return a plan with this rule.
pub fn with_rule(rule: Value) -> Value {
    let mut plan = plan();
    plan["rules"] = json!([rule]);
    plan
}

/// Return a plan whose compiler `clang` is this command.
pub fn with_clang(command: Value) -> Value {
    let mut plan = plan();
    plan["compilers"]["clang"]["command"] = command;
    plan
}

/// Return the first of these programs that is installed.
pub fn installed(programs: &[&'static str]) -> Option<&'static str> {
    programs.iter().find(|program| Command::new(program).arg("--version").output().is_ok()).copied()
}

/// Return whether clang is installed, and report if it isn't.
pub fn has_clang() -> bool {
    let is_here = installed(&["clang-19", "clang"]).is_some();
    if !is_here {
        println!("not tried: clang isn't installed");
    }
    is_here
}
