//! The `.gcda` files of a kernel with CONFIG_GCOV_KERNEL, which it makes when they are read.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::null;

use super::Source;
use super::arena::{Arena, read_whole};

pub const DEBUGFS: &str = "/sys/kernel/debug";

pub struct Gcov {
    files: Vec<PathBuf>,
    names: Vec<String>,
}

impl Gcov {
    /// Find all files. Mounts debugfs, if it isn't mounted.
    pub fn open(debugfs: &Path) -> Result<Gcov, String> {
        let root = debugfs.join("gcov");
        if !root.exists() {
            // SAFETY: C strings; null for "no options". If it fails, there is no directory below.
            unsafe { libc::mount(c"debugfs".as_ptr(), c"/sys/kernel/debug".as_ptr(), c"debugfs".as_ptr(), 0, null()) };
        }
        let mut files = Vec::new();
        collect(&root, &mut files).map_err(|error| {
            format!("{}: {error} (a kernel with CONFIG_GCOV_KERNEL and CONFIG_DEBUG_FS has it)", root.display())
        })?;
        if files.is_empty() {
            return Err(format!("{} has no .gcda file: CONFIG_GCOV_PROFILE_ALL makes them", root.display()));
        }
        files.sort();
        let name = |file: &PathBuf| file.strip_prefix(&root).unwrap_or(file).to_string_lossy().into_owned();
        Ok(Gcov { names: files.iter().map(name).collect(), files })
    }
}

/// Add the `.gcda` files below a directory; what is a link isn't one.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            collect(&path, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "gcda") {
            files.push(path);
        }
    }
    Ok(())
}

impl Source for Gcov {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn read(&mut self, arena: &mut Arena) -> Result<(), String> {
        for (path, name) in self.files.iter().zip(&self.names) {
            arena.add(|free| {
                let mut file = File::open(path).map_err(|error| format!("{name}: {error}"))?;
                read_whole(&mut file, free, name)
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_gcda_files_are_read_in_order_and_no_link_is_followed() {
        let root = std::env::temp_dir().join(format!("kdyno-gcov-{}", std::process::id()));
        fs::create_dir_all(root.join("gcov/kernel")).unwrap();
        fs::write(root.join("gcov/kernel/fork.gcda"), "fork").unwrap();
        fs::write(root.join("gcov/a.gcda"), "a").unwrap();
        fs::write(root.join("gcov/reset"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("gcov/kernel/fork.gcno")).unwrap();
        let mut gcov = Gcov::open(&root).unwrap();
        assert_eq!(gcov.names(), ["a.gcda", "kernel/fork.gcda"]);
        let mut arena = Arena::new().unwrap();
        gcov.read(&mut arena).unwrap();
        assert_eq!([arena.item(0), arena.item(1)], [&b"a"[..], b"fork"]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_kernel_that_counts_nothing_is_refused() {
        let root = std::env::temp_dir().join(format!("kdyno-gcov-none-{}", std::process::id()));
        fs::create_dir_all(root.join("gcov")).unwrap();
        let message = Gcov::open(&root).err().unwrap();
        assert!(message.contains("has no .gcda file"), "{message}");
        fs::remove_dir_all(root).unwrap();
    }
}
