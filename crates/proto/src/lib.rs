//! The types that cross a process boundary between the agent in a guest and kdyno on the host.
//!
//! Everything here is one JSON object, versioned by its first key `"v"`, ASCII only, and refused when it holds a field
//! that this version doesn't know: a silently dropped field is a silently wrong measurement.
//!
//! - [`Job`]: host → agent, one file, what to do.
//! - [`Record`]: agent → host, one line each, what happened.
//! - [`CountersItem`], [`CountersEnd`]: agent → host, lines between the bytes of what an instrumented kernel counted.
//! - [`Catalogue`]: agent → host, what this agent could be asked to do.

#![forbid(unsafe_code)]

mod catalogue;
mod counters;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod fuzz;
mod hex;
mod job;
mod lanes;
mod line;
mod record;
mod words;

pub use catalogue::{Catalogue, CatalogueBenchmark, CatalogueParam, CatalogueTest};
pub use counters::{COUNTERS_PORT, Counters, CountersEnd, CountersItem};
pub use job::{Channel, Job, JobError, JobTest, Measured, Program, Soak};
pub use lanes::{LANES, Lane, LaneRow};
pub use line::LineError;
pub use record::Record;
pub use words::{Direction, Kind, Phase, Progress, Stream, Suite};

/// The version of every type in this crate.
pub const VERSION: u64 = 1;

/// The virtio-serial port on which records leave a guest.
pub const PORT: &str = "org.kdyno.agent";

/// Where the job is in a guest.
pub const JOB_PATH: &str = "/kdyno/job.json";

/// Where the guest's root file system is, if it has one: a squashfs.
pub const ROOT_PATH: &str = "/kdyno/root.squashfs";
