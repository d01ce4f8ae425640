//! Looks through kernel objects and linked kernels for what compilers did wrong.
//!
//! [`lint_object`] is for one object in memory, [`lint_files`] for a set. Objects may be hostile: what can't be read
//! is refused with one line, and no lint panics, or takes more than time in proportion to the file.

#![forbid(unsafe_code)]

mod alternative;
mod binary;
mod costly;
mod disassembly;
mod files;
mod finding;
mod flow;
#[cfg(test)]
mod fuzz;
mod lines;
mod lints;
mod program;
mod settings;
mod shared;
#[cfg(test)]
mod specimen;
mod state;

pub use binary::Named;
pub use costly::{Form, Rule};
pub use files::{Told, lint_files, lint_object};
pub use finding::{Finding, Level};
pub use lints::{LINTS, Lint};
pub use settings::Settings;
