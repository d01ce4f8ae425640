//! The clock of each lane, and what takes samples with it.

mod calibration;
pub mod clock;
pub mod counter;
pub mod recorder;
mod ticks;
mod warm_up;

pub use clock::Clock;
pub use recorder::{Recorder, Stopwatch};
pub use ticks::Ticks;
