//! The clock of each lane, and what takes samples with it.

pub mod clock;
pub mod recorder;

pub use clock::Clock;
pub use recorder::{Recorder, Stopwatch};
