//! The types that cross a process boundary between the agent in a guest and kdyno on the host.
//!
//! Everything here is one JSON object, versioned by its first key `"v"`, ASCII only, and refused when it holds a field
//! that this version doesn't know: a silently dropped field is a silently wrong measurement.
//!
//! - [`Job`]: host → agent, one file, what to do.
//! - [`Record`]: agent → host, one line each, what happened.
//! - [`Catalogue`]: agent → host, what this agent could be asked to do.

mod catalogue;
mod hex;
mod job;
mod line;
mod record;
mod words;

pub use catalogue::{Catalogue, CatalogueBenchmark, CatalogueParam, CatalogueTest};
pub use job::{Job, JobError, JobTest};
pub use line::LineError;
pub use record::Record;
pub use words::{Direction, Kind, Lane, Stream, Unit};

/// The version of every type in this crate.
pub const VERSION: u64 = 1;
