//! `ccd` as a kernel's build calls it, with the compilers that are installed here.

#![forbid(unsafe_code)]

mod calls;
mod failures;
mod kit;
mod passes;
mod probes;
mod rewriting;
