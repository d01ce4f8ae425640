//! What the system refused to do with a file, as a failure with the way out.

pub use kdyno_tool::Failure;
use std::io;

pub trait OfFile {
    /// Return the failure for what the system refused to do with a file.
    fn of_file(action: &str, path: &std::path::Path, error: &io::Error) -> Self;
}

impl OfFile for Failure {
    fn of_file(action: &str, path: &std::path::Path, error: &io::Error) -> Failure {
        let hint = match error.raw_os_error().map(nix::errno::Errno::from_raw) {
            Some(nix::errno::Errno::EACCES) => "run it as root",
            // debugfs answers so to root where the kernel is locked down: debugfs_locked_down() in fs/debugfs/file.c.
            Some(nix::errno::Errno::EPERM) => "a kernel in lockdown, as with Secure Boot, keeps debugfs closed",
            Some(nix::errno::Errno::ENOSPC | nix::errno::Errno::EDQUOT) => "free some space, or lower --max-bytes",
            _ => "",
        };
        Failure::of_surroundings(format!("can't {action} {}: {}", path.display(), reason(error)), hint)
    }
}

/// Return the system's words without its number.
fn reason(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => nix::errno::Errno::from_raw(number).desc().to_lowercase(),
        None => error.to_string(),
    }
}
