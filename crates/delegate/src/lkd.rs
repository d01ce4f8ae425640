//! `lkd`: the linker, which gives a kernel's functions the order that a seed stands for.
//!
//! Its business is the last link of vmlinux, which is made one to four times until the table of symbols fits; all other
//! calls go on unchanged. Objects keep their order, which is that of the initcalls.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;

use crate::call::KernelLink;
use crate::copies::{Copies, PREFIX};
use crate::exec::become_tool;
use crate::inputs::{code, each_object, parse};
use crate::order::shuffled;
use crate::script::Script;

/// The real linker.
const LINKER: &str = "KDYNO_LD";
/// The seed of the order; set for every call of a build that asks for a layout.
const SEED: &str = "KDYNO_LAYOUT_SEED";
/// What this program makes of a seed. kdyno says which one it counts on, because it is part of an image's key: raise
/// both (FORMAT in kernel/delegate.py) whenever the same seed would give another order.
const FORMAT: (&str, &str) = ("KDYNO_LAYOUT_FORMAT", "1");
/// The changed script, beside the output; its first line says what was done, and kdyno reads it after the build.
const SCRIPT: &str = ".kdyno-layout.lds";
/// Where copies of objects go, beside the output.
const COPIES: &str = ".kdyno-layout";

/// Do what the call asks for; returns only if that can't be done, and why.
pub fn run(arguments: Vec<OsString>) -> String {
    match KernelLink::read(&arguments) {
        None => become_tool(LINKER, &arguments),
        Some(link) => match laid_out(&link, &arguments) {
            Ok(changed) => become_tool(LINKER, &changed),
            Err(why) => format!("can't lay out {}: {why}", link.output.display()),
        },
    }
}

/// Write what gives the link its order; returns the words of the changed call.
fn laid_out(link: &KernelLink, arguments: &[OsString]) -> Result<Vec<OsString>, String> {
    if env::var_os(FORMAT.0).is_none_or(|asked| asked != FORMAT.1) {
        return Err(format!("{} must be {}: kdyno and lkd are of different versions", FORMAT.0, FORMAT.1));
    }
    let seed = env::var(SEED).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = seed.ok_or(format!("{SEED} must be a number, the seed of the order"))?;
    if let Some(list) = link.candidates.iter().find(|path| path.to_string_lossy().starts_with('@')) {
        return Err(format!("its objects are listed in {}, which it doesn't read", list.display()));
    }
    let unreadable = |error| format!("can't read {}: {error}", link.script.display());
    let given = fs::read_to_string(&link.script).map_err(unreadable)?;
    let script = Script::parse(&given)?;
    let (changed, arguments, sections) = if is_lld() {
        let directory = link.output.with_file_name(COPIES);
        let takes = |name: &str| script.takes(name);
        let mut copies = Copies::new(&directory, seed, &takes)?;
        let arguments = copies.replaced(arguments, &|path| link.is_candidate(path))?;
        (script.with_sorted(PREFIX), arguments, copies.sections)
    } else {
        let names = function_sections(link, &script)?;
        (script.with_order(&shuffled(&names, seed)), arguments.to_vec(), names.len())
    };
    if sections == 0 {
        return Err("its objects have no function sections; they are made by -ffunction-sections".to_owned());
    }
    let path = link.output.with_file_name(SCRIPT);
    let header = format!("/* kdyno layout: format {}, seed {seed}, {sections} sections */\n", FORMAT.1);
    fs::write(&path, header + &changed).map_err(|error| format!("can't write {}: {error}", path.display()))?;
    Ok(link.with_script(&arguments, &path))
}

/// LLVM's linker tells its flavours apart by its name as well.
fn is_lld() -> bool {
    env::var(LINKER).is_ok_and(|name| name.rsplit('/').next().is_some_and(|file| file.starts_with("ld.lld")))
}

/// The names of all sections that the order is about, each once.
fn function_sections(link: &KernelLink, script: &Script) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    for path in &link.candidates {
        each_object(path, &mut |path, data| {
            names.extend(code(&parse(path, data)?, &|name| script.takes(name)).iter().map(|each| each.name.to_owned()));
            Ok(())
        })?;
    }
    Ok(names)
}
