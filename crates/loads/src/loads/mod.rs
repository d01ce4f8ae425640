//! The loads, and what each of them has to say.

mod fault;
mod fft;
mod fft2;
mod fourier;
mod himeno;
mod loopio;
mod mandelbrot;
mod matmul;
mod sieve;
mod sources;
mod stress;
mod transpose;

use crate::failure::Failure;
use crate::memory::Memory;
use crate::outcome::{Facts, Repetition};
use crate::parameters::{Parameters, Setting};

#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    pub about: &'static str,
    /// `repeat`, which every load has, is not among them.
    pub settings: &'static [Setting],
    /// What values of several settings must have together.
    pub check: fn(&Parameters) -> Result<(), Failure>,
    /// Maps and fills what is worked on.
    pub prepare: fn(&Parameters) -> Result<Box<dyn Load>, Failure>,
}

/// A load whose data is made.
pub trait Load {
    /// Undoes what a repetition changed, where the next one would do something else; not timed.
    fn reset(&mut self) {}

    /// The computation, timed.
    fn run(&mut self) -> Result<Repetition, Failure>;

    /// With all that the computation needs still mapped.
    fn memory(&self) -> Option<Memory> {
        Memory::now()
    }

    /// Computes otherwise what the last repetition should have given. What it says of the result doesn't depend on the time.
    fn verify(&mut self) -> Result<Facts, Failure>;
}

pub const LOADS: &[Program] = &[
    matmul::MATMUL,
    transpose::TRANSPOSE,
    fft::FFT,
    fft2::FFT2,
    himeno::HIMENO,
    sieve::SIEVE,
    mandelbrot::MANDELBROT,
    fault::FAULT,
    loopio::LOOPIO,
    sources::SOURCES,
    stress::MEMORY_STRESS,
];

const fn any_values(_: &Parameters) -> Result<(), Failure> {
    Ok(())
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::arguments::{Verb, parse};
    use crate::driver;

    /// Runs a load as the command line does; what it gives is what the outcome's JSON holds.
    pub fn outcome(line: &str) -> Result<serde_json::Value, Failure> {
        match parse(line.split_whitespace().map(Into::into))? {
            Verb::Run { program, parameters, .. } => {
                driver::run(program, &parameters).map(|outcome| serde_json::from_str(&outcome.json()).unwrap())
            }
            other => panic!("{other:?} runs no load"),
        }
    }

    /// The prepared load of a command line.
    pub fn prepared(line: &str) -> Box<dyn Load> {
        match parse(line.split_whitespace().map(Into::into)).unwrap() {
            Verb::Run { program, parameters, .. } => {
                (program.prepare)(&parameters).unwrap_or_else(|why| panic!("{why}"))
            }
            other => panic!("{other:?} runs no load"),
        }
    }
}
