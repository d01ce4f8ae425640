//! Temporary files, which go away however a call ends.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

/// A path of ccd's own; what is there when its owner ends is removed.
pub struct Temporary(PathBuf);

impl Temporary {
    /// Name a file of this suffix in the directory for temporary files.
    pub fn new(suffix: &str) -> Self {
        Self(env::temp_dir().join(format!("ccd-{}{suffix}", process::id())))
    }

    /// Name a file beside another one, which it may replace in one step.
    pub fn beside(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default();
        let mut own = std::ffi::OsString::from(format!(".ccd-{}-", process::id()));
        own.push(name);
        Self(path.with_file_name(own))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Put it where another file is.
    pub fn replace(self, path: &Path) -> Result<(), String> {
        fs::rename(&self.0, path).map_err(|error| format!("can't write {}: {error}", path.display()))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Most often it was never made, or has its place by now.
        let _ = fs::remove_file(&self.0);
    }
}
