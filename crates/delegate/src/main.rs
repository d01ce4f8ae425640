//! kdyno-delegate: stands in for a tool of a kernel build, and is told by its own name which.
//!
//! `ccd` is the C compiler (`make CC=.../ccd`), `lkd` the linker (`make LD=.../lkd`). Every delegate knows three answers: the call is not its business and goes
//! on unchanged; the call is changed and goes on; or it can't be changed as asked, and the build fails.

#![forbid(unsafe_code)]

mod call;
mod ccd;
mod copies;
mod data;
mod exec;
mod first;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod fuzz;
mod grouped;
mod groups;
mod inputs;
mod listed;
mod lkd;
mod order;
mod prefixes;
mod scan;
mod script;
mod survey;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// This program's own name. `kdyno-delegate options` prints the table of options as Markdown (docs/delegation.md).
const OWN: &str = "kdyno-delegate";

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let own = words.next().unwrap_or_default();
    let name = Path::new(&own).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let arguments: Vec<_> = words.collect();
    let failure = match name.as_str() {
        // A compiler that links calls its linker `ld`, which it finds in a directory that -B names.
        "lkd" | "ld" => lkd::run(arguments),
        "ccd" => match ccd::run(&arguments) {
            Ok(status) => return status,
            Err(why) => why,
        },
        OWN if arguments == ["options"] => {
            // A reader that closes its end is not an error.
            let _ = std::io::stdout().write_all(ccd::options().as_bytes());
            return ExitCode::SUCCESS;
        }
        _ => "call me by the name of a delegate: ccd, lkd".to_owned(),
    };
    eprintln!("{name}: error: {failure}");
    ExitCode::FAILURE
}
