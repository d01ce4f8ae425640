//! By way of assembler: the compiler writes text, passes mend it, GNU as makes the object of it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::compile::{Compile, Item};
use super::family::Family;
use super::options::is_zig;
use super::passes::{BUILT_IN, through_program};
use super::plan::{Compiler, Plan, Rule};
use super::record::PassRecord;
use super::run::{Failure, completed, fed};
use super::temporary::Temporary;

/// Options whose other files are named by the object or hold its name: the compiler makes the object itself.
const DIRECT: [&str; 5] = ["-gsplit-dwarf", "-fprofile-arcs", "-ftest-coverage", "--coverage", "-fprofile-generate"];

/// Clang leaves inline assembler to GNU as word for word, as Kconfig has asked GNU as what it knows, and writes nothing
/// that only LLVM's assembler knows. Without this it reads inline assembler itself and writes it anew.
pub const GNU_AS: &str = "-fno-integrated-as";

/// Leaves out comments, which are most of clang's text.
const NO_COMMENTS: &str = "-fno-verbose-asm";

/// Return why a call is not compiled by way of assembler: an option, or the compiler.
pub fn direct_because(items: &[Item], compiler: &Compiler) -> Option<&'static str> {
    if is_zig(&compiler.command) {
        // zig 0.17.1 gives no text, no error and no message if it is asked for text and a dependency file.
        return Some("zig writes no text where there is a dependency file");
    }
    DIRECT.into_iter().find(|option| items.iter().any(|item| item.is(option)))
}

/// Return the words of a compiler that writes text in place of an object.
pub fn text_words(items: &[Item], compile: &Compile, family: Family, text: &Path) -> Vec<Item> {
    let mut changed: Vec<Item> = Vec::with_capacity(items.len() + 8);
    for item in items {
        match item {
            item if item.is("-c") => changed.push(Item::Option("-S".into())),
            item if is_for_assembler(item) => {}
            Item::Output(..) => {}
            item => changed.push(item.clone()),
        }
    }
    changed.push(Item::Output(text.into(), vec!["-o".into(), text.into()]));
    changed.extend(dependency_words(items, &compile.object, family));
    if family == Family::Clang {
        changed.extend([GNU_AS, NO_COMMENTS].map(|word| Item::Option(word.into())));
    }
    changed
}

/// Return the words for the dependency file. Compilers name the dependency file, and the target in it, by the output,
/// which isn't the object now. GCC's preprocessor, which `-Wp,` speaks to, names it by the source.
fn dependency_words(items: &[Item], object: &Path, family: Family) -> Vec<Item> {
    let has = |option: &str| items.iter().any(|item| item.is(option));
    let by_driver = has("-MD") || has("-MMD");
    let by_preprocessor = items.iter().any(|item| item.starts_with("-Wp,-MD") || item.starts_with("-Wp,-MMD"));
    let given = |option: &str| items.iter().any(|item| item.starts_with(option));
    let mut words = Vec::new();
    if (by_driver || (by_preprocessor && family == Family::Clang)) && !given("-MT") && !given("-MQ") {
        words.push(Item::Valued("-MQ".into(), object.into()));
    }
    if by_driver && !given("-MF") {
        words.push(Item::Valued("-MF".into(), object.with_extension("d").into()));
    }
    words
}

fn is_for_assembler(item: &Item) -> bool {
    item.starts_with("-Wa,") || matches!(item, Item::Valued(word, _) if word == "-Xassembler")
}

/// Return the words for GNU as, as GCC's driver gives them (`gcc -###`).
fn assembler_words(items: &[Item]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut level = true;
    let mut debug: Option<OsString> = None;
    for item in items {
        match item {
            Item::Valued(word, value) if word == "-I" => words.extend(["-I".into(), value.clone()]),
            Item::Valued(word, value) if word == "-Xassembler" => words.push(value.clone()),
            Item::Option(word) => {
                let bytes = word.as_bytes();
                if let Some(directory) = bytes.strip_prefix(b"-I") {
                    words.extend(["-I".into(), OsStr::from_bytes(directory).to_owned()]);
                } else if let Some(list) = bytes.strip_prefix(b"-Wa,") {
                    words.extend(list.split(|byte| *byte == b',').map(|word| OsString::from_vec(word.to_vec())));
                } else if let Some(how) = bytes.strip_prefix(b"-gz") {
                    words.push([OsStr::new("--compress-debug-sections"), OsStr::from_bytes(how)].into_iter().collect());
                } else if let Some(version) = bytes.strip_prefix(b"-gdwarf-") {
                    debug = Some([OsStr::new("--gdwarf-"), OsStr::from_bytes(version)].into_iter().collect());
                } else if bytes == b"-g0" {
                    level = false;
                } else if matches!(bytes, b"-g" | b"-g1" | b"-g2" | b"-g3" | b"-ggdb") {
                    level = true;
                }
            }
            _ => {}
        }
    }
    words.extend(debug.filter(|_| level));
    words.push("--64".into());
    words
}

/// Return the file that keeps the text: `foo.c.S` beside the object.
fn kept(compile: &Compile) -> PathBuf {
    let mut name = compile.source.file_name().unwrap_or_default().to_owned();
    name.push(".S");
    compile.object.with_file_name(name)
}

/// Make the object of a compiler's text. `items` are the words of the compiler.
pub fn assembled(
    plan: &Plan,
    rule: &Rule,
    items: &[Item],
    compile: &Compile,
    text: &Path,
) -> Result<Vec<PassRecord>, Failure> {
    let of = |verb: &str, path: &Path, error: std::io::Error| {
        Failure::Trouble(format!("can't {verb} {}: {error}", path.display()))
    };
    let mut records = Vec::new();
    let mut mended: Option<Vec<u8>> = None;
    if !rule.passes.is_empty() {
        let mut content = fs::read(text).map_err(|error| of("read", text, error))?;
        let mut is_mended = false;
        for name in &rule.passes {
            let changed = match BUILT_IN.iter().find(|pass| pass.name == name) {
                Some(pass) => (pass.apply)(&content),
                None => through_program(name, &plan.programs[name], &content)?,
            };
            records.push(PassRecord {
                name: name.clone(),
                changes: changed.as_ref().map_or(0, |changed| changed.changes),
            });
            if let Some(changed) = changed {
                (content, is_mended) = (changed.text, true);
            }
        }
        mended = is_mended.then_some(content);
    }
    if plan.assem {
        let kept = kept(compile);
        match &mended {
            Some(content) => fs::write(&kept, content),
            None => fs::copy(text, &kept).map(|_| ()),
        }
        .map_err(|error| of("write", &kept, error))?;
    }
    let object = Temporary::beside(&compile.object);
    let mut words: Vec<OsString> = plan.assembler.iter().map(Into::into).collect();
    words.extend(assembler_words(items));
    words.extend(["-o".into(), object.path().into()]);
    let failed = |failure: Failure| failure.of(&plan.assembler.join(" "));
    match mended {
        Some(content) => fed(&words, &content).map_err(failed)?,
        None => {
            words.push(text.into());
            completed(&words).map_err(failed)?;
        }
    }
    object.replace(&compile.object).map_err(Failure::Trouble)?;
    Ok(records)
}
