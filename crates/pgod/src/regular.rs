//! Opening a file that may have been replaced: neither a pipe, which would keep its reader waiting, nor a link, nor a
//! device is taken for it.

use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Open a regular file for reading.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Open a regular file as the options say.
pub fn open_with(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = options.clone().custom_flags(flags.bits()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}
