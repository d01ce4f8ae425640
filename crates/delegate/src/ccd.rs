//! `ccd`: the C compiler, which a plan chooses for each file of a kernel.
//!
//! A call that isn't a compile, a probe of Kconfig's for instance, goes to the plan's reference compiler. A compile that
//! no rule is about does so as well, and is on record. Any other is rewritten for the compiler that its rule names, and
//! may go by way of assembler. See docs/delegation.md.

mod assembler;
mod compile;
mod family;
#[cfg(test)]
mod fuzz;
mod lint;
mod options;
mod passes;
mod plan;
mod probe;
mod profile;
mod record;
mod response;
mod rewrite;
mod run;
mod source;
mod temporary;

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use compile::{Call, Compile, Language};
use plan::{Plan, Rule};
use profile::ProfileWords;
use record::{Answer, ObjectRecord};

/// The resolved plan.
const PLAN: &str = "KDYNO_DELEGATION";
/// Words before a compiler that compiles: ccache.
const LAUNCHER: &str = "KDYNO_LAUNCHER";

/// Return the table of options, as Markdown.
pub fn options() -> String {
    options::table()
}

/// Do what the call asks for; returns the exit status, or why it can't be done.
pub fn run(arguments: &[OsString]) -> Result<ExitCode, String> {
    let path = env::var_os(PLAN).ok_or(format!("{PLAN} is not set: it names the resolved delegation plan"))?;
    let plan = Plan::read(Path::new(&path))?;
    let call = Call::read(arguments);
    if plan.held && probe::is_probe(&call) {
        return probe::run(&plan, &call, arguments);
    }
    let Some(compile) = call.compile() else { return Err(become_reference(&plan, &[], arguments)) };
    let source = source::in_tree(&compile.source);
    let words_for = |family| profile::words_for(&plan.profiles, family, &call, &compile, &source);
    match chosen(&plan, &call, &compile, &source) {
        Err(reason) => {
            let mut record = passed(&plan, &compile, &source, reason);
            let ProfileWords { words, names } = words_for(plan.reference().family)?;
            record.profiles = names;
            let arguments = &[arguments, &words].concat();
            if plan.lint && call.is_kernel_code() && matches!(compile.language, Language::C) {
                return rewrite::run_reference(&plan, record, &compile, arguments);
            }
            record::append(&record)?;
            Err(become_reference(&plan, &launcher(), arguments))
        }
        Ok(rule) => {
            let profile_words = words_for(plan.compiler(rule).family)?;
            rewrite::run(&plan, rule, &call, &compile, &source, &profile_words, arguments)
        }
    }
}

/// Return the rule that a compile is rewritten by, or why it passes through.
fn chosen<'a>(plan: &'a Plan, call: &Call, compile: &Compile, source: &str) -> Result<&'a Rule, &'static str> {
    match compile.language {
        Language::Assembly => return Err("assembly code"),
        Language::C if call.is_kernel_code() => {}
        _ => return Err("not code of the running kernel"),
    }
    let rule = plan.rule_for(source).ok_or("no rule chose it")?;
    if plan.is_idle(rule) { Err("the rule leaves it as it is") } else { Ok(rule) }
}

fn passed(plan: &Plan, compile: &Compile, source: &str, reason: &str) -> ObjectRecord {
    ObjectRecord {
        object: compile.object.to_string_lossy().into_owned(),
        source: source.to_owned(),
        answer: Answer::Passed,
        reason: Some(reason.to_owned()),
        rule: None,
        compiler: plan.reference.clone(),
        added: Vec::new(),
        removed: Vec::new(),
        translated: Vec::new(),
        by_assembler: false,
        passes: Vec::new(),
        profiles: Vec::new(),
        notes: Vec::new(),
        findings: Vec::new(),
        seconds: None,
    }
}

fn launcher() -> Vec<OsString> {
    let words = env::var(LAUNCHER).unwrap_or_default();
    words.split_whitespace().map(OsString::from).collect()
}

/// Replace this process by the reference compiler; returns why that can't be.
fn become_reference(plan: &Plan, launcher: &[OsString], arguments: &[OsString]) -> String {
    let mut words = launcher.to_vec();
    words.extend(plan.reference().command.iter().map(OsString::from));
    let error = Command::new(&words[0]).args(&words[1..]).args(arguments).exec();
    format!("can't run {}: {error}", words[0].to_string_lossy())
}
