//! The kernel's counters in debugfs (kernel/gcov/fs.c): one `.gcda` file for each object, below directories that are named
//! as those it was compiled in.
//!
//! The kernel copies an object's counters when its file is opened, and the file is that copy: what is read is of one
//! moment, however long the reading takes. Different objects are read one after the other.

use crate::failure::{Failure, OfFile};
use crate::regular;
use nix::sys::statfs::{DEBUGFS_MAGIC, statfs};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const DEBUGFS: &str = "/sys/kernel/debug";
const SUFFIX: &str = "gcda";
/// Far more than a kernel has: 6.12 with kdyno's configuration has 689 objects, the largest with 44 kB.
const MOST_OBJECTS: usize = 200_000;
pub const LARGEST_OBJECT: u64 = 64 << 20;
const DEEPEST: usize = 64;

pub struct Gcov {
    root: PathBuf,
}

impl Gcov {
    /// Find the counters below `directory`, else the kernel's own. Fails where there is none, and says what is missing.
    pub fn find(directory: Option<&Path>) -> Result<Gcov, Failure> {
        if directory.is_none() && statfs(DEBUGFS).ok().is_none_or(|status| status.filesystem_type() != DEBUGFS_MAGIC) {
            let message = format!("debugfs is not mounted on {DEBUGFS}, where the kernel shows its counters");
            return Err(Failure::of_surroundings(message, "mount -t debugfs debugfs /sys/kernel/debug"));
        }
        let root = directory.map_or_else(|| Path::new(DEBUGFS).join("gcov"), Path::to_path_buf);
        let gcov = Gcov { root };
        if gcov.objects()?.is_empty() {
            let message = format!("no object of this kernel has counters: {} holds no .gcda file", gcov.root.display());
            return Err(Failure::of_surroundings(
                message,
                "boot a kernel that was built with CONFIG_GCOV_PROFILE_ALL=y",
            ));
        }
        Ok(gcov)
    }

    /// Return the objects that count, as paths below the root, in the order of their names. Links are not followed.
    pub fn objects(&self) -> Result<Vec<PathBuf>, Failure> {
        let (mut objects, mut folders) = (Vec::new(), vec![PathBuf::new()]);
        while let Some(folder) = folders.pop() {
            // Joined with nothing, a path would end with a slash.
            let path = if folder == Path::new("") { self.root.clone() } else { self.root.join(&folder) };
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                // A module that was unloaded while we looked.
                Err(error) if is_gone(&error) && folder != Path::new("") => continue,
                Err(error) if is_gone(&error) => return Err(self.no_counters()),
                Err(error) => return Err(Failure::of_file("read", &path, &error)),
            };
            for entry in entries.flatten() {
                let (Ok(kind), below) = (entry.file_type(), folder.join(entry.file_name())) else { continue };
                if kind.is_dir() && below.components().count() <= DEEPEST {
                    folders.push(below);
                } else if kind.is_file() && below.extension().is_some_and(|suffix| suffix == SUFFIX) {
                    objects.push(below);
                }
            }
            if objects.len() > MOST_OBJECTS {
                let message = format!("{} holds more than {MOST_OBJECTS} .gcda files", self.root.display());
                return Err(Failure::of_surroundings(message, "name the gcov directory of a kernel with --gcov"));
            }
        }
        objects.sort();
        Ok(objects)
    }

    /// Read the counters of an object into `buffer`; false if the object is gone.
    pub fn read(&self, object: &Path, buffer: &mut Vec<u8>) -> Result<bool, Failure> {
        buffer.clear();
        let path = self.root.join(object);
        match read_regular(&path, buffer) {
            Ok(()) => Ok(true),
            Err(error) if is_gone(&error) => Ok(false),
            Err(error) => Err(Failure::of_file("read", &path, &error)),
        }
    }

    /// Set all counters to 0 (reset_write() in kernel/gcov/fs.c).
    pub fn reset(&self) -> Result<(), Failure> {
        let path = self.root.join("reset");
        let result =
            regular::open_with(&path, OpenOptions::new().write(true)).and_then(|mut file| file.write_all(b"1"));
        result.map_err(|error| Failure::of_file("reset the counters by", &path, &error))
    }

    fn no_counters(&self) -> Failure {
        let message = format!("this kernel has no counters: {} does not exist", self.root.display());
        Failure::of_surroundings(
            message,
            "boot a kernel that was built with CONFIG_GCOV_KERNEL=y, CONFIG_GCOV_PROFILE_ALL=y",
        )
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn read_regular(path: &Path, buffer: &mut Vec<u8>) -> io::Result<()> {
    regular::open(path)?.take(LARGEST_OBJECT + 1).read_to_end(buffer)?;
    match buffer.len() as u64 <= LARGEST_OBJECT {
        true => Ok(()),
        false => Err(io::Error::other(format!("it is larger than {LARGEST_OBJECT} bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("kdyno-pgod-gcov-{name}.{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("build/mm")).unwrap();
        path
    }

    #[test]
    fn only_regular_files_that_end_in_gcda_are_objects() {
        let root = scratch("kinds");
        fs::write(root.join("build/mm/slub.gcda"), "counters").unwrap();
        fs::write(root.join("reset"), "").unwrap();
        symlink("/etc/passwd", root.join("build/mm/slub.gcno")).unwrap();
        symlink("/etc/passwd", root.join("build/mm/link.gcda")).unwrap();
        symlink("/etc", root.join("build/etc.gcda")).unwrap();
        nix::unistd::mkfifo(&root.join("build/pipe.gcda"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let gcov = Gcov::find(Some(&root)).unwrap();
        assert_eq!(gcov.objects().unwrap(), [Path::new("build/mm/slub.gcda")]);
        let mut buffer = b"old".to_vec();
        assert_eq!(gcov.read(Path::new("build/mm/slub.gcda"), &mut buffer), Ok(true));
        assert_eq!(buffer, b"counters");
        assert_eq!(gcov.read(Path::new("build/mm/gone.gcda"), &mut buffer), Ok(false));
        for odd in ["build/mm/link.gcda", "build/pipe.gcda"] {
            assert!(gcov.read(Path::new(odd), &mut buffer).is_err(), "{odd}");
        }
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_is_missing_is_said_with_the_way_out() {
        let root = scratch("missing");
        let failure = |path: &Path| Gcov::find(Some(path)).err().unwrap();
        assert!(failure(&root).to_string().contains("CONFIG_GCOV_PROFILE_ALL"));
        assert!(failure(&root.join("none")).to_string().contains("this kernel has no counters"));
        assert_eq!(failure(&root).exit_code, 3);
        fs::remove_dir_all(&root).unwrap();
    }
}
