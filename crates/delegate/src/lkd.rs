//! `lkd`: the linker, which gives a kernel's functions the order of a file, of a seed, or of both.
//!
//! Its business is the last link of vmlinux, which is made one to four times until the table of symbols fits; all other
//! calls go on unchanged, and so does this one if no order is asked for. Objects keep their order, which is that of the
//! initcalls.

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::call::KernelLink;
use crate::copies::{Copies, Ranked};
use crate::data::with_data;
use crate::exec::become_tool;
use crate::first::First;
use crate::grouped;
use crate::listed::{Gap, Listed};
use crate::order::{place, shuffled};
use crate::prefixes::patterns;
use crate::script::{Changes, Script, in_order, left_free, sorted, with_gaps, with_start};
use crate::survey::Survey;

/// The real linker of vmlinux.
const LINKER: &str = "KDYNO_LD";
/// The real linker of everything else, if that is another: a compiler may link vmlinux with another one than the one
/// that compiles where there is link-time optimisation (ARCH=um).
const LTO_LINKER: &str = "KDYNO_LTO_LD";
/// The seed of the order, for every call of a build that asks for a layout by seed.
pub const SEED: &str = "KDYNO_LAYOUT_SEED";
/// Begins the names of variables with words for the link of vmlinux.o, which is where link-time optimisation compiles.
const LTO_WORDS: &str = "KDYNO_LTO_WORDS";
/// The file whose functions come first, for every call of a build that asks for that.
pub const ORDER: &str = "KDYNO_ORDER";
/// Names of sections that become part of the kernel's data, with blanks between them.
const DATA: &str = "KDYNO_DATA_SECTIONS";
/// What this program makes of a seed. kdyno says which one it counts on, because it is part of an image's key: raise
/// both (FORMAT in kernel/lkd.py) whenever the same seed would give another order.
const FORMAT: (&str, &str) = ("KDYNO_LAYOUT_FORMAT", "1");
/// The changed script, beside the output; its first line says what was done, and kdyno reads it after the build.
pub const SCRIPT: &str = ".kdyno-layout.lds";
/// Where copies of objects go, beside the output.
const COPIES: &str = ".kdyno-layout";
/// ld.lld sorts functions by calls where clang compiled by a profile (`.llvm.call-graph-profile`), within each statement of
/// a script too: not where an order is asked for.
const OWN_ORDER: &str = "--no-call-graph-profile-sort";
/// What the names of sections start with in the copies: those that come first, and those that a seed orders.
const PREFIXES: (&str, &str) = (".text.lkd-first.", ".text.lkd.");

/// What the environment asks for; neither leaves functions in link order.
struct WantedOrder {
    order: Option<Listed>,
    seed: Option<u64>,
}

/// Do what the call asks for; returns only if that can't be done, and why.
pub fn run(arguments: Vec<OsString>) -> String {
    let is_asked = [FORMAT.0, SEED, ORDER].iter().any(|name| env::var_os(name).is_some());
    let other = if env::var_os(LTO_LINKER).is_some() { LTO_LINKER } else { LINKER };
    match KernelLink::read(&arguments) {
        None if is_vmlinux_o(&arguments) && is_lld(other) => become_tool(other, &[arguments, lto_words()].concat()),
        None => become_tool(other, &arguments),
        Some(_) if !is_asked => become_tool(LINKER, &arguments),
        Some(link) => match laid_out(&link, &arguments) {
            Ok(changed) => become_tool(LINKER, &changed),
            Err(why) => format!("can't lay out {}: {why}", link.output.display()),
        },
    }
}

/// Write what gives the link its order; returns the words of the changed call.
fn laid_out(link: &KernelLink, arguments: &[OsString]) -> Result<Vec<OsString>, String> {
    let request = read_request()?;
    if let Some(list) = link.candidates.iter().find(|path| path.to_string_lossy().starts_with('@')) {
        return Err(format!("its objects are listed in {}, which it doesn't read", list.display()));
    }
    let unreadable = |error| format!("can't read {}: {error}", link.script.display());
    let data = env::var(DATA).unwrap_or_default();
    let data: Vec<&str> = data.split_whitespace().collect();
    let original = with_data(&fs::read_to_string(&link.script).map_err(unreadable)?, &data)?;
    let script = Script::parse(&original)?;
    let ordered_functions = request.order.as_ref().map_or(&[][..], |order| &order.functions);
    let mut survey = Survey::of(&link.candidates, &script, ordered_functions)?;
    grouped::keep(&link.output, &survey.grouped)?;
    let first = request.order.as_ref().map_or(Ok(First::default()), |order| First::of(order, &survey))?;
    if survey.functions.is_empty() && first.sections.is_empty() {
        return Err("its objects have no function sections; they are made by -ffunction-sections".to_owned());
    }
    let sections = survey.functions.iter().chain(&first.sections).collect::<BTreeSet<_>>().len();
    for section in &first.sections {
        survey.functions.remove(section);
    }
    let header = header(&request, &survey, &first, sections);
    let mut changes = Changes { first: &first.sections, groups: survey.lacking, ..Changes::default() };
    if request.seed.is_none() {
        // Where no copies are made, the statements before have taken the sections that come first.
        changes.patterns = patterns(&survey.functions, &survey.others);
    }
    let arguments = if is_lld(LINKER) {
        changes.first_statements = sorted_with_gaps(&first);
        changes.statements = request.seed.map_or(String::new(), |_| sorted(PREFIXES.1));
        let mut arguments = copied(link, arguments, &first, &survey.functions, request.seed)?;
        if request.seed.is_some() || request.order.is_some() {
            arguments.push(OWN_ORDER.into());
        }
        arguments
    } else {
        changes.first_statements = with_gaps(&first.sections, &first.gaps);
        changes.statements = request.seed.map_or(String::new(), |seed| in_order(&shuffled(&survey.functions, seed)));
        arguments.to_vec()
    };
    let path = link.output.with_file_name(SCRIPT);
    let changed = header + &script.with(&changes);
    fs::write(&path, changed).map_err(|error| format!("can't write {}: {error}", path.display()))?;
    Ok(link.with_script(&arguments, &path))
}

/// Read what the environment asks for.
fn read_request() -> Result<WantedOrder, String> {
    if env::var_os(FORMAT.0).is_none_or(|format| format != FORMAT.1) {
        return Err(format!("{} must be {}: kdyno and lkd are of different versions", FORMAT.0, FORMAT.1));
    }
    let seed = env::var_os(SEED).map(|text| text.to_str().and_then(|text| text.parse::<u64>().ok()));
    let order = env::var_os(ORDER).map(|path| Listed::read(Path::new(&path))).transpose()?;
    if seed == Some(None) {
        return Err(format!("{SEED} must be a number, the seed of the order"));
    }
    Ok(WantedOrder { order, seed: seed.flatten() })
}

/// Return the line by which kdyno recognises the result; it holds only numbers and plain names.
fn header(asked: &WantedOrder, survey: &Survey, first: &First, sections: usize) -> String {
    let file = asked.order.as_ref().map_or("none", |order| order.file.as_str());
    let listed = asked.order.as_ref().map_or(0, |order| order.functions.len());
    let seed = asked.seed.map_or("none".to_owned(), |seed| seed.to_string());
    let added: Vec<String> = survey.lacking.iter().map(|group| format!("{}*", group.prefix)).collect();
    let added = if added.is_empty() { "none".to_owned() } else { added.join(" ") };
    format!(
        "/* kdyno layout: format {}, order {file}, seed {seed}, {sections} sections; \
         placed {} of {listed}, {} without a section; added {added} */\n",
        FORMAT.1, first.placed, first.elsewhere
    )
}

/// Return the ranks that sort the first sections in the copies: those between two gaps are a run, with one number in
/// the upper half of their ranks.
fn ranks(first: &First) -> impl Iterator<Item = u64> {
    let runs = first.gaps.iter().scan(0, |run, gap| {
        *run += u64::from(*gap != Gap::default());
        Some(*run)
    });
    runs.zip(0..).map(|(run, place)| run << 32 | place)
}

/// Return one statement for each run, and the gaps between them.
fn sorted_with_gaps(first: &First) -> String {
    let mut statements = String::new();
    let mut latest = None;
    for (gap, rank) in first.gaps.iter().zip(ranks(first)).take(first.sections.len()) {
        if latest.replace(rank >> 32) != Some(rank >> 32) {
            statements += &left_free(gap);
            statements += &sorted(&format!("{}{:08x}", PREFIXES.0, rank >> 32));
        }
    }
    with_start(&first.gaps, &statements)
}

/// Return the words of a call with copies of its objects, in which sections have names that sort them.
fn copied(
    link: &KernelLink,
    arguments: &[OsString],
    first: &First,
    functions: &BTreeSet<String>,
    seed: Option<u64>,
) -> Result<Vec<OsString>, String> {
    let ranks: HashMap<&str, u64> = first.sections.iter().map(String::as_str).zip(ranks(first)).collect();
    let rank = |name: &str| {
        if let Some(rank) = ranks.get(name) {
            return Some(Ranked { prefix: PREFIXES.0, rank: *rank, align: None });
        }
        let (rank, align) = place(name, seed.filter(|_| functions.contains(name))?);
        Some(Ranked { prefix: PREFIXES.1, rank, align })
    };
    let directory = link.output.with_file_name(COPIES);
    Copies::new(&directory, &rank)?.replaced(arguments, &|path| link.is_candidate(path))
}

/// Return whether the call makes vmlinux.o of all objects (scripts/Makefile.vmlinux_o).
fn is_vmlinux_o(arguments: &[OsString]) -> bool {
    let output = arguments.iter().position(|word| word == "-o").and_then(|at| arguments.get(at + 1));
    arguments.iter().any(|word| word == "-r") && output.is_some_and(|output| output == "vmlinux.o")
}

/// Return the words about profiles for that link, in the order of the variables' names.
fn lto_words() -> Vec<OsString> {
    let mut variables: Vec<_> = env::vars().filter(|(name, _)| name.starts_with(LTO_WORDS)).collect();
    variables.sort();
    variables.iter().flat_map(|(_, words)| words.split_whitespace().map(OsString::from)).collect()
}

/// Return whether the linker that a variable names is LLVM's, which distinguishes its flavours by its name as well.
fn is_lld(variable: &str) -> bool {
    env::var(variable).is_ok_and(|name| name.rsplit('/').next().is_some_and(|file| file.starts_with("ld.lld")))
}
