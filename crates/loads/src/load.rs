//! What a load is: its name and settings, how its data is made, its computation, and how the result is verified.

use crate::failure::Failure;
use crate::memory::Memory;
use crate::outcome::{Facts, Repetition};
use crate::parameters::{Parameters, Setting};

#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    pub summary: &'static str,
    /// `repeat`, which every load has, is not among them.
    pub settings: &'static [Setting],
    /// What values of several settings must have together.
    pub check: fn(&Parameters) -> Result<(), Failure>,
    /// Maps and fills what is worked on.
    pub prepare: fn(&Parameters) -> Result<Box<dyn Load>, Failure>,
}

/// A load whose data is made.
pub trait Load {
    /// Undo what a repetition changed, where the next one would do something else; not timed.
    fn reset(&mut self) {}

    /// Run the computation, timed.
    fn run(&mut self) -> Result<Repetition, Failure>;

    /// Return the memory in use, with all that the computation needs still mapped.
    fn memory(&self) -> Option<Memory> {
        Memory::read()
    }

    /// Compute otherwise what the last repetition should have given. Its facts about the result don't depend on the
    /// time.
    fn verify(&mut self) -> Result<Facts, Failure>;
}

/// Accept any values, for settings of which all values go together.
pub const fn any_values(_: &Parameters) -> Result<(), Failure> {
    Ok(())
}
