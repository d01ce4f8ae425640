//! The suite `general`: a load to train compilers and linkers with, not a benchmark.
//!
//! What a profile saw decides what it is worth, so this one shall have seen a little of everything that a kernel does for
//! programs: a shell session, a build, sockets, files, memory, processes and signals. Sizes and orders are drawn from a
//! fixed seed, so that no call is made in a tight loop; none of LMBench's loops is in it. What makes and ends processes
//! is measured too. What a kernel lacks is left out.

pub mod build;
pub mod compiler;
pub mod files;
pub mod ipc;
pub mod memory;
pub mod net;
pub mod shell;
pub mod system;

mod child;
mod epoll;
mod file_calls;
mod load;
mod mix;
mod net_tcp;
mod net_udp;
mod net_unix;
mod pipes;
mod process_calls;
mod processes;
mod ready;
mod signals;
mod threads;
