//! The emulated PMU: a TCG plugin for QEMU that counts what a kernel does in measured regions.
//!
//! It sees each block of kernel code, each block of user code and, with `events=all`, each access of the kernel to
//! memory, and does nothing until marker instructions (crates/marker) say that a region begins. At QEMU's end it writes
//! one file, the PMU record. (Translating everything anew at the first marker, to spare the boot the callbacks, was
//! tried: translation costs more than the callbacks.)
//!
//! plugin: what QEMU calls · options, symbols, geometry: what it is told · decode, system, block: what is known
//! before code runs · counter: the hot path, and when regions begin and end · trace: what it keeps of it · stacks, detail,
//! predictor, and crates/model: what it models · timing, pipeline, units, waiting: what takes how long · limits: how much is kept at
//! most · counted, region, record: what comes out

use kdyno_model::{events, frontend, geometry, hardware, tlb};

mod block;
mod counted;
mod counter;
mod decode;
mod detail;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod fuzz;
mod instruction;
mod limits;
mod options;
mod pipeline;
mod plugin;
mod predictor;
mod record;
mod region;
mod stacks;
mod symbols;
mod system;
mod timing;
mod trace;
mod units;
mod waiting;
