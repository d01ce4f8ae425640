//! What can go wrong: one line, with the way out, and an exit code.

use nix::errno::Errno;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// A result is not what it should be.
const WRONG: u8 = 1;
/// The surroundings failed: memory, the file system, a process.
const SURROUNDINGS: u8 = 3;
/// The command line can't be understood: EX_USAGE of <sysexits.h>.
const USAGE: u8 = 64;

/// The way out of most mistakes on the command line.
pub const SEE_HELP: &str = "`kdyno-loads --help` says what there is";

/// A process can hand it to another.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    message: String,
    hint: String,
    pub exit_code: u8,
}

impl Failure {
    pub fn of_usage(message: impl Into<String>, hint: &str) -> Failure {
        Failure { message: message.into(), hint: hint.into(), exit_code: USAGE }
    }

    pub fn of_surroundings(message: impl Into<String>, hint: &str) -> Failure {
        Failure { message: message.into(), hint: hint.into(), exit_code: SURROUNDINGS }
    }

    pub fn wrong(message: impl Into<String>) -> Failure {
        let hint = "the computation went wrong: doubt the kernel, the processor or the memory before this program";
        Failure { message: format!("wrong result: {}", message.into()), hint: hint.into(), exit_code: WRONG }
    }

    /// What the system refused to do.
    pub fn of_call(done: &str, errno: Errno) -> Failure {
        Failure::of_surroundings(format!("can't {done}: {}", errno.desc().to_lowercase()), way_out(errno))
    }

    pub fn of_io(done: &str, error: &io::Error) -> Failure {
        match error.raw_os_error() {
            Some(number) => Failure::of_call(done, Errno::from_raw(number)),
            None => Failure::of_surroundings(format!("can't {done}: {error}"), ""),
        }
    }
}

fn way_out(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOMEM => "ask for less with --size or --bytes, or give the machine more memory",
        Errno::ENOSPC | Errno::EDQUOT => "free some space, or lower --bytes",
        Errno::EAGAIN => "lower --processes, or the limit on them is too low (ulimit -u)",
        _ => "",
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hint.as_str() {
            "" => write!(out, "{}", self.message),
            hint => write!(out, "{}; {hint}", self.message),
        }
    }
}
