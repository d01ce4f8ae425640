//! What kdyno's programs have in common: how they read a command line, how they fail, and their random numbers.

#![forbid(unsafe_code)]

pub mod arguments;
mod failure;
pub mod random;

pub use failure::Failure;
