//! kdyno-debuginfo: what an ELF file says of itself and of its sources, a line of JSON for each thing.
//!
//! file: the bytes · limits: how much of what · elf: sections and symbols · dwarf: what debug information is made of ·
//! units: which code a source file was compiled to · lines: line tables · frames: the functions that an address is in

#![forbid(unsafe_code)]

mod dwarf;
mod elf;
mod file;
mod frames;
#[cfg(test)]
mod fuzz;
mod limits;
mod lines;
mod output;
mod units;

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use kdyno_tool::Failure;
use kdyno_tool::arguments::{Argument, Arguments};

use crate::file::Binary;
use crate::output::Output;

const HELP: &str = "\
usage: kdyno-debuginfo VERB FILE

elf      the machine, the sections, the symbols
units    the compilation units that have code: name, directory, ranges of addresses
lines    the files of all line tables, and the code of each line
frames   for each address on stdin, a hexadecimal number in a line, the functions that it is code of

Each line that it prints is JSON.
";

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("kdyno-debuginfo: error: {}", failure.to_string().replace('\n', " "));
            ExitCode::from(failure.exit_code)
        }
    }
}

fn run(mut words: Vec<OsString>) -> Result<(), Failure> {
    // A path may be any bytes, and begin with a hyphen.
    let path = if words.len() > 1 { words.pop() } else { None };
    let mut arguments = Arguments::new(words.into_iter());
    match (arguments.next_argument().map_err(usage)?, path) {
        (Some(help), None) if help.asks_for_help() => print(HELP),
        (Some(version), None) if version.asks_for_version() => {
            print(concat!("kdyno-debuginfo ", env!("CARGO_PKG_VERSION"), "\n"))
        }
        (Some(Argument::Word(verb)), Some(path)) => match arguments.next_argument().map_err(usage)? {
            None => tell(&verb, Path::new(&path)),
            Some(more) => Err(usage(format!("one verb and one file are needed, and no '{}'", more.text()))),
        },
        _ => Err(usage("a verb and a file are needed".into())),
    }
}

fn usage(why: String) -> Failure {
    Failure::of_usage(why, "kdyno-debuginfo --help lists the verbs")
}

fn tell(verb: &str, path: &Path) -> Result<(), Failure> {
    let unreadable = |why| Failure::of_user(why, "");
    let mut output = Output::new(BufWriter::new(std::io::stdout().lock()));
    let data = file::read(path).map_err(unreadable)?;
    limits::bound_memory(data.len()).map_err(|why| Failure::of_surroundings(why, ""))?;
    let binary = Binary::parse(&data).map_err(unreadable)?;
    match verb {
        "elf" => elf::tell(&binary, &mut output),
        "units" => units::tell(&binary, &mut output),
        "lines" => lines::tell(&binary, &mut output),
        "frames" => frames::addresses(&mut std::io::stdin().lock())
            .and_then(|addresses| frames::tell(&binary, &addresses, &mut output)),
        _ => return Err(usage(format!("there is no verb {verb}"))),
    }
    .map_err(unreadable)?;
    output.finish().map_err(|why| Failure::of_surroundings(why, ""))
}

fn print(text: &str) -> Result<(), Failure> {
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(|error| Failure::of_surroundings(format!("can't write: {error}"), ""))
}
