//! Probes: calls by which Kconfig and Kbuild find out what the compiler can do. One configuration is for all compilers
//! of a mixed kernel, so it may rely only on what all of them can.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::assembler::GNU_AS;
use super::compile::{Call, Item, is_nothing, words};
use super::family::Family;
use super::options::for_compiler;
use super::plan::{Compiler, Plan};
use super::record::{ProbeRecord, append};
use super::run::{Failure, asked, catch_signals, end_by};
use super::source;
use super::temporary::Temporary;

/// What a family accepts, but Linux never has of it: part of the source, and the reason.
const NOT_FOR: [(Family, &[u8], &str); 1] = [(
    Family::Clang,
    b"__seg_gs",
    "Linux uses named address spaces with GCC only (arch/x86/Kconfig, CC_HAS_NAMED_AS): clang 19 drops the segment of an \
    operand of inline assembler",
)];

/// Return whether the exit status is the call's answer, it isn't about a file of the kernel, and the answer is about
/// code that any compiler of the plan may be given: not boot code, real mode or the vDSO.
pub fn is_probe(call: &Call) -> bool {
    let inputs = call.inputs();
    let [input] = inputs[..] else { return false };
    let gives_status = ["-c", "-S", "-fsyntax-only"].iter().any(|option| call.has(option)) && !call.is_question();
    gives_status
        && !call.is_for_other_code()
        && call.output().is_none_or(|output| output != "-")
        && (is_nothing(input) || is_temporary(input))
}

/// Return whether a file is in the directory for temporary files, which itself may be in the tree or hold it.
fn is_temporary(input: &OsStr) -> bool {
    let real = |path: PathBuf| path.canonicalize().ok();
    let Some(file) = real(PathBuf::from(input)) else { return false };
    let length = |directory: Option<PathBuf>| {
        directory.filter(|directory| file.starts_with(directory)).map_or(0, |directory| directory.components().count())
    };
    let of_the_kernel = length(env::current_dir().ok().and_then(real)).max(length(source::tree().and_then(real)));
    length(real(env::temp_dir())) > of_the_kernel
}

/// Ask the reference, and if it says yes the others; returns the exit status, or why they can't be asked.
pub fn run(plan: &Plan, call: &Call, arguments: &[OsString]) -> Result<ExitCode, String> {
    catch_signals()?;
    let mut input = Vec::new();
    if call.inputs().contains(&OsStr::new("-")) {
        io::stdin().read_to_end(&mut input).map_err(|error| format!("can't read the source: {error}"))?;
    }
    let reference: Vec<OsString> = plan.reference().command.iter().map(OsString::from).collect();
    let answer = asked(&[&reference[..], arguments].concat(), &input);
    match answer {
        Ok(answer) => {
            eprint!("{}", String::from_utf8_lossy(&answer.messages));
            if answer.status != 0 {
                return Ok(ExitCode::from(answer.status));
            }
        }
        Err(failure) => return Err(trouble(failure)),
    }
    for (name, compiler) in plan.others() {
        let refused = refusal(plan, (name, compiler), call, &input).map_err(trouble)?;
        let Some(why) = refused else { continue };
        let probe = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        append(&ProbeRecord { probe, refused_by: name.to_owned(), why: why.clone() })?;
        eprintln!("ccd: {name} refuses it: {why}");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn trouble(failure: Failure) -> String {
    match failure {
        Failure::Interrupted(signal) => {
            end_by(signal);
            format!("interrupted by signal {signal}")
        }
        Failure::Child(why) | Failure::Trouble(why) => why,
    }
}

/// Return why a compiler doesn't pass a probe that the reference passes.
fn refusal(
    plan: &Plan,
    (name, compiler): (&str, &Compiler),
    call: &Call,
    input: &[u8],
) -> Result<Option<String>, Failure> {
    let holds = |part: &[u8]| input.windows(part.len()).any(|window| window == part);
    if let Some((_, _, why)) = NOT_FOR.iter().find(|(family, part, _)| *family == compiler.family && holds(part)) {
        return Ok(Some((*why).to_owned()));
    }
    let mut items = match for_compiler(call.items.clone(), plan.reference().family, compiler) {
        Ok(translation) => translation.items,
        Err(option) => return Ok(Some(format!("the table has no row for {}", option.to_string_lossy()))),
    };
    if plan.is_by_assembler_only(name) && compiler.family == Family::Clang {
        items.push(Item::Option(GNU_AS.into()));
    }
    let object = Temporary::new(".o");
    items.retain(|item| !matches!(item, Item::Output(..)));
    items.push(output(object.path()));
    let mut command: Vec<OsString> = compiler.command.iter().map(OsString::from).collect();
    command.extend(words(&items));
    let answer = asked(&command, input)?;
    Ok((answer.status != 0).then(|| first_line(&answer.messages)))
}

fn output(path: &Path) -> Item {
    Item::Output(path.into(), vec!["-o".into(), path.into()])
}

/// Return the first line that reports an error.
fn first_line(messages: &[u8]) -> String {
    let text = String::from_utf8_lossy(messages);
    let line = text.lines().find(|line| line.contains("error")).or(text.lines().next());
    line.unwrap_or("it failed without a message").to_owned()
}
