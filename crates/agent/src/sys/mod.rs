//! System calls as the measured code wants them: raw, without allocation, failing with the call's name.

pub mod cpu;
pub mod errno;
pub mod failure;
pub mod fd;
pub mod file;
pub mod inet;
pub mod peer;

pub use failure::{Failure, Stop, check, exactly};
