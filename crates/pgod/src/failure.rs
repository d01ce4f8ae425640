//! What a user can meet: one line, with the way out, and an exit code as in all of kdyno.

use std::fmt;
use std::io;

/// What was asked can't be done as asked.
const USER: u8 = 1;
/// The surroundings failed: the kernel, the disk, rights.
const SURROUNDINGS: u8 = 3;

#[derive(Debug, PartialEq)]
pub struct Failure {
    message: String,
    hint: &'static str,
    pub exit_code: u8,
}

impl Failure {
    pub fn of_user(message: impl Into<String>, hint: &'static str) -> Failure {
        Failure { message: message.into(), hint, exit_code: USER }
    }

    pub fn of_surroundings(message: impl Into<String>, hint: &'static str) -> Failure {
        Failure { message: message.into(), hint, exit_code: SURROUNDINGS }
    }

    /// What the system refused to do with a file.
    pub fn of_file(done: &str, path: &std::path::Path, error: &io::Error) -> Failure {
        let hint = match error.raw_os_error().map(nix::errno::Errno::from_raw) {
            Some(nix::errno::Errno::EACCES) => "run it as root",
            // debugfs answers so to root where the kernel is locked down: debugfs_locked_down() in fs/debugfs/file.c.
            Some(nix::errno::Errno::EPERM) => "a kernel in lockdown, as with Secure Boot, keeps debugfs closed",
            Some(nix::errno::Errno::ENOSPC | nix::errno::Errno::EDQUOT) => "free some space, or lower --max-bytes",
            _ => "",
        };
        Failure::of_surroundings(format!("can't {done} {}: {}", path.display(), reason(error)), hint)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hint {
            "" => write!(out, "{}", self.message),
            hint => write!(out, "{}; {hint}", self.message),
        }
    }
}

/// The system's words without its number.
fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => nix::errno::Errno::from_raw(number).desc().to_lowercase(),
        None => error.to_string(),
    }
}
