//! kdyno-loads: numeric and process loads of two published accounts, on a host or in a guest.
//!
//! Each load is timed around its computation only, and its result is verified by another way of computing it. Large arrays
//! are mapped, so that transparent huge pages apply to them.

mod area;
mod arguments;
mod clock;
mod driver;
mod failure;
mod fork;
#[cfg(test)]
mod formats;
mod large_pages;
mod load;
mod loads;
mod memory;
mod outcome;
mod parameters;
mod patchwork;
mod processes;
mod scramble;
mod threads;
mod userfault;

use arguments::Verb;
use failure::Failure;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match arguments::parse(std::env::args_os().skip(1)).and_then(act) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "kdyno-loads: {}", failure.to_string().replace('\n', " "));
            ExitCode::from(failure.exit_code)
        }
    }
}

fn act(verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Help => print(&arguments::help()),
        Verb::Version => print(&format!("kdyno-loads {}\n", env!("CARGO_PKG_VERSION"))),
        Verb::Run { program, parameters, json } => {
            let outcome = driver::run(program, &parameters)?;
            print(&if json { outcome.json() } else { outcome.text() });
        }
    }
    Ok(())
}

/// Print to standard output; a reader that closes its end is not an error.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
