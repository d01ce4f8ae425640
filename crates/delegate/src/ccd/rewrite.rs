//! A compile by the compiler that a rule names.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use super::compile::{Call, Compile, Item};
use super::options::translated;
use super::plan::{Plan, Rule};
use super::record::{Answer, ObjectRecord, append};
use super::run::{Failure, catch_signals, completed, cpu_seconds, end_by};
use super::temporary::Temporary;
use super::{assembler, become_reference, launcher, passed, response};

/// Longer command lines go to compilers in a response file, in bytes: an eighth of what Linux takes by default, with
/// room for the environment.
const LONGEST: usize = 1 << 18;

/// Compile, and put it on record; returns the exit status, or why it can't be done.
pub fn run(
    plan: &Plan,
    rule: &Rule,
    call: &Call,
    compile: &Compile,
    source: &str,
    arguments: &[OsString],
) -> Result<ExitCode, String> {
    catch_signals()?;
    let mut record = ObjectRecord {
        answer: Answer::Rewritten,
        reason: None,
        rule: Some(rule.name.clone()),
        compiler: rule.compiler.clone(),
        ..passed(plan, compile, source, "")
    };
    let failure = match compiled(plan, rule, call, compile, &mut record) {
        Ok(()) => {
            record.seconds = cpu_seconds();
            append(&record)?;
            return Ok(ExitCode::SUCCESS);
        }
        Err(failure) => failure,
    };
    let why = match failure {
        Failure::Interrupted(signal) => {
            end_by(signal);
            return Err(format!("{source}: interrupted by signal {signal}"));
        }
        Failure::Child(why) | Failure::Trouble(why) => format!("{source}: {why} ({})", rule.name),
    };
    if !plan.fallback {
        return Err(why);
    }
    eprintln!("ccd: warning: {why}; the reference compiles it");
    append(&ObjectRecord {
        answer: Answer::Fallback,
        rule: Some(rule.name.clone()),
        ..passed(plan, compile, source, &why)
    })?;
    Err(become_reference(plan, &launcher(), arguments))
}

/// Make the object. If that fails there is none, not even an old one.
fn compiled(
    plan: &Plan,
    rule: &Rule,
    call: &Call,
    compile: &Compile,
    record: &mut ObjectRecord,
) -> Result<(), Failure> {
    let items = chosen_words(plan, rule, call, record)?;
    let compiler = plan.compiler(rule);
    let failed = |failure: Failure| failure.of(&rule.compiler);
    let mut command = launcher();
    command.extend(compiler.command.iter().map(OsString::from));
    let made = if rule.by_assembler && record.by_assembler {
        let text = Temporary::new(".s");
        let words = assembler::text_words(&items, compile, compiler.family, text.path());
        called(&command, &words, call.has_response_file)
            .map_err(failed)
            .and_then(|()| assembler::assembled(plan, rule, &items, compile, text.path()))
            .map(|passes| record.passes = passes)
    } else {
        called(&command, &items, call.has_response_file).map_err(failed)
    };
    if made.is_err() {
        // There may be nothing to remove.
        let _ = fs::remove_file(&compile.object);
    }
    made
}

/// The words of the call for the chosen compiler: some removed, translated if need be, some added.
fn chosen_words(plan: &Plan, rule: &Rule, call: &Call, record: &mut ObjectRecord) -> Result<Vec<Item>, Failure> {
    let is_removed = |item: &Item| item.option().is_some_and(|option| rule.remove.iter().any(|word| option == **word));
    let (removed, mut items): (Vec<Item>, Vec<Item>) = call.items.iter().cloned().partition(is_removed);
    record.removed = removed.iter().filter_map(Item::option).map(|word| word.to_string_lossy().into_owned()).collect();
    let family = plan.compiler(rule).family;
    if family != plan.reference().family {
        let translation = translated(&items, family).map_err(|option| unknown(&option, rule))?;
        (items, record.translated) = (translation.items, translation.changes);
    }
    items.extend(rule.add.iter().map(|word| Item::Option(word.into())));
    record.added = rule.add.clone();
    if rule.by_assembler {
        let reason = assembler::direct_because(&items);
        record.by_assembler = reason.is_none();
        record.notes.extend(reason.map(|option| format!("not by way of assembler: {option}")));
    }
    Ok(items)
}

fn unknown(option: &OsStr, rule: &Rule) -> Failure {
    let option = option.to_string_lossy();
    Failure::Trouble(format!(
        "ccd doesn't know what {option} is for {}; remove = [\"{option}\"] in the rule leaves it out, or choose another \
        compiler for the file",
        rule.compiler
    ))
}

/// Run a compiler; its words go in a response file if they came in one, or are very long.
fn called(command: &[OsString], items: &[Item], has_response_file: bool) -> Result<(), Failure> {
    let words: Vec<OsString> = items.iter().flat_map(Item::words).collect();
    let length: usize = words.iter().map(|word| word.len() + 1).sum();
    if !has_response_file && length < LONGEST {
        return completed(&[command, &words].concat());
    }
    let file = Temporary::new(".rsp");
    let of = |path: &Path, error| Failure::Trouble(format!("can't write {}: {error}", path.display()));
    fs::write(file.path(), response::joined(&words)).map_err(|error| of(file.path(), error))?;
    let at: OsString = [OsStr::new("@"), file.path().as_os_str()].into_iter().collect();
    completed(&[command, &[at]].concat())
}
