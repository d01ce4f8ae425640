//! A compile by the compiler that a rule names.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use super::compile::{Call, Compile, Item, words};
use super::options::for_compiler;
use super::plan::{Plan, Rule};
use super::profile::ProfileWords;
use super::record::{Answer, ObjectRecord, append};
use super::run::{Failure, catch_signals, completed, cpu_seconds, end_by};
use super::temporary::Temporary;
use super::{assembler, become_reference, launcher, lint, passed, response};

/// Compile, and put it on record; return the exit status, or why it can't be done.
pub fn run(
    plan: &Plan,
    rule: &Rule,
    call: &Call,
    compile: &Compile,
    source: &str,
    profile_words: &ProfileWords,
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
    let made = compiled(plan, rule, call, compile, profile_words, &mut record)
        .and_then(|()| recorded(plan, &mut record, compile));
    let Err(failure) = made else { return Ok(ExitCode::SUCCESS) };
    let why = undone(failure, compile, source).map(|why| format!("{why} ({})", rule.name))?;
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

/// Let the reference compile as it was called, for an object that is to be looked through.
pub fn run_reference(
    plan: &Plan,
    mut record: ObjectRecord,
    compile: &Compile,
    arguments: &[OsString],
) -> Result<ExitCode, String> {
    catch_signals()?;
    let mut command = launcher();
    command.extend(plan.reference().command.iter().map(OsString::from));
    let made = completed(&[&command, arguments].concat())
        .map_err(|failure| failure.of(&plan.reference))
        .and_then(|()| recorded(plan, &mut record, compile));
    let Err(failure) = made else { return Ok(ExitCode::SUCCESS) };
    Err(undone(failure, compile, &record.source)?)
}

/// Look through the object if that is wanted, and put it on record.
fn recorded(plan: &Plan, record: &mut ObjectRecord, compile: &Compile) -> Result<(), Failure> {
    record.seconds = cpu_seconds();
    if plan.lint {
        record.findings = lint::findings(&compile.object, &record.source).map_err(Failure::Trouble)?;
    }
    append(record).map_err(Failure::Trouble)
}

/// Remove the object, old or new, which would pass for a good one; returns what went wrong, as an error if ccd has to end.
fn undone(failure: Failure, compile: &Compile, source: &str) -> Result<String, String> {
    let _ = fs::remove_file(&compile.object);
    match failure {
        Failure::Interrupted(signal) => {
            end_by(signal);
            Err(format!("{source}: interrupted by signal {signal}"))
        }
        Failure::Child(why) | Failure::Trouble(why) => Ok(format!("{source}: {why}")),
    }
}

/// Make the object.
fn compiled(
    plan: &Plan,
    rule: &Rule,
    call: &Call,
    compile: &Compile,
    profile_words: &ProfileWords,
    record: &mut ObjectRecord,
) -> Result<(), Failure> {
    let mut items = chosen_words(plan, rule, call, record)?;
    let compiler = plan.compiler(rule);
    items.extend(profile_words.words.iter().cloned().map(Item::Option));
    record.profiles = profile_words.names.clone();
    let failed = |failure: Failure| failure.of(&rule.compiler);
    let mut command = launcher();
    command.extend(compiler.command.iter().map(OsString::from));
    if !record.by_assembler {
        return called(&command, &items, call.has_response_file).map_err(failed);
    }
    let text = Temporary::new(".s");
    let words = assembler::text_words(&items, compile, compiler.family, text.path());
    called(&command, &words, call.has_response_file).map_err(failed)?;
    record.passes = assembler::assembled(plan, rule, &items, compile, text.path())?;
    Ok(())
}

/// Return the words of the call for the chosen compiler: some removed, translated if need be, some added.
fn chosen_words(plan: &Plan, rule: &Rule, call: &Call, record: &mut ObjectRecord) -> Result<Vec<Item>, Failure> {
    let is_removed = |item: &Item| item.option().is_some_and(|option| rule.remove.iter().any(|word| option == **word));
    let (removed, items): (Vec<Item>, Vec<Item>) = call.items.iter().cloned().partition(is_removed);
    record.removed = removed.iter().filter_map(Item::option).map(|word| word.to_string_lossy().into_owned()).collect();
    let from = plan.reference().family;
    let translation = for_compiler(items, from, plan.compiler(rule)).map_err(|option| unknown(&option, rule))?;
    let mut items = translation.items;
    record.translated = translation.changes;
    items.extend(rule.add.iter().map(|word| Item::Option(word.into())));
    record.added = rule.add.clone();
    if rule.by_assembler {
        let reason = assembler::direct_because(&items, plan.compiler(rule));
        record.by_assembler = reason.is_none();
        record.notes.extend(reason.map(|reason| format!("not by way of assembler: {reason}")));
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

/// Run a compiler; its words go in a response file if they came in one.
fn called(command: &[OsString], items: &[Item], has_response_file: bool) -> Result<(), Failure> {
    let words = words(items);
    if !has_response_file {
        return completed(&[command, &words].concat());
    }
    let file = Temporary::new(".rsp");
    let of = |path: &Path, error| Failure::Trouble(format!("can't write {}: {error}", path.display()));
    fs::write(file.path(), response::joined(&words)).map_err(|error| of(file.path(), error))?;
    let at: OsString = [OsStr::new("@"), file.path().as_os_str()].into_iter().collect();
    completed(&[command, &[at]].concat())
}
