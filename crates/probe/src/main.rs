//! kdyno-probe: small programs of many kinds, to fit a cycle model to and to test it on.
//!
//! On a processor it times them; under `qemu-x86_64` with the emulated PMU and `--marked` the same code is counted.
//! Integer code in plain words and bytes, as a kernel's is: nothing is left to the compiler's vectors.

mod arena;
mod cli;
mod code;
mod opaque;
mod processor;
mod program;
mod programs;
mod rng;
mod run;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::parse(std::env::args_os().skip(1)).and_then(|verb| cli::act(&verb)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("kdyno-probe: {what}");
            ExitCode::FAILURE
        }
    }
}
