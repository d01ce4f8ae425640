//! The loads, and the list of all of them.

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

use crate::load::Program;

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

#[cfg(test)]
mod test {
    use crate::arguments::{Verb, parse};
    use crate::driver;
    use crate::failure::Failure;
    use crate::load::Load;

    /// Run a load as the command line does; what it gives is what the outcome's JSON holds.
    pub fn outcome(line: &str) -> Result<serde_json::Value, Failure> {
        match parse(line.split_whitespace().map(Into::into))? {
            Verb::Run { program, parameters, .. } => {
                driver::run(program, &parameters).map(|outcome| serde_json::from_str(&outcome.json()).unwrap())
            }
            other => panic!("{other:?} runs no load"),
        }
    }

    /// Return the prepared load of a command line.
    pub fn prepared(line: &str) -> Box<dyn Load> {
        match parse(line.split_whitespace().map(Into::into)).unwrap() {
            Verb::Run { program, parameters, .. } => {
                (program.prepare)(&parameters).unwrap_or_else(|why| panic!("{why}"))
            }
            other => panic!("{other:?} runs no load"),
        }
    }
}
