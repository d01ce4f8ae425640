//! What can go wrong: one line, with the way out, and an exit code.

pub use kdyno_tool::Failure;
use nix::errno::Errno;
use std::io;

/// The way out of most mistakes on the command line.
pub const SEE_HELP: &str = "`kdyno-loads --help` lists what there is";

/// Return the failure for a result that is not what it should be.
pub fn wrong_result(message: impl Into<String>) -> Failure {
    let hint = "the computation went wrong: doubt the kernel, the processor or the memory before this program";
    Failure::of_user(format!("wrong result: {}", message.into()), hint)
}

/// Return the failure for what the system refused to do.
pub fn call_failure(action: &str, errno: Errno) -> Failure {
    Failure::of_surroundings(format!("can't {action}: {}", errno.desc().to_lowercase()), way_out(errno))
}

pub fn io_failure(action: &str, error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(number) => call_failure(action, Errno::from_raw(number)),
        None => Failure::of_surroundings(format!("can't {action}: {error}"), ""),
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
