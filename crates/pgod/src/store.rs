//! The directory with the snapshots: one directory for each boot, named by its id, and in it
//!
//!     0001-000007.tar.gz    the seventh snapshot of the boot, in its first run
//!     run                   the run that is now; `2 reset`: the second, and the counters are still to be reset for it
//!
//! Everything is written beside its place, in `.writing`, and renamed. So whatever has a name is whole, and a program
//! that was killed leaves one file more at most, which the next one removes.

use crate::failure::{Failure, OfFile};
use crate::kernel::is_boot_id;
use crate::regular;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

const LOCK: &str = "lock";
const WRITING: &str = ".writing";
const RUN: &str = "run";
const SUFFIX: &str = ".tar.gz";
/// Bytes of what a file `run` says.
const LONGEST_RUN: u64 = 100;
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

pub struct Store {
    root: PathBuf,
}

/// Only one program writes to a store. The lock dies with it.
pub struct Writer {
    pub store: Store,
    _lock: Flock<File>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotFile {
    pub boot: String,
    pub run: u32,
    pub sequence: u64,
    pub size: u64,
    pub time: SystemTime,
}

impl SnapshotFile {
    /// Return the path below the store's directory.
    pub fn name(&self) -> String {
        format!("{}/{}", self.boot, file_name(self.run, self.sequence))
    }
}

/// The run of a boot that is now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    pub number: u32,
    /// Its counters are still to be set to 0.
    pub reset: bool,
}

fn file_name(run: u32, sequence: u64) -> String {
    format!("{run:04}-{sequence:06}{SUFFIX}")
}

fn parse_name(name: &str) -> Option<(u32, u64)> {
    let (run, sequence) = name.strip_suffix(SUFFIX)?.split_once('-')?;
    let numbers = (run.parse().ok()?, sequence.parse().ok()?);
    (file_name(numbers.0, numbers.1) == name).then_some(numbers)
}

impl Store {
    /// Open a store to read. Fails if there is none.
    pub fn open(root: &Path) -> Result<Store, Failure> {
        match fs::read_dir(root) {
            Ok(_) => Ok(Store { root: root.into() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!("there is no directory {}", root.display());
                Err(Failure::of_user(message, "`kdyno-pgod run` makes it; --directory names another one"))
            }
            Err(error) => Err(Failure::of_file("read", root, &error)),
        }
    }

    /// Return whether a kdyno-pgod writes to it now.
    pub fn has_writer(&self) -> bool {
        let lock = regular::open(&self.root.join(LOCK));
        lock.is_ok_and(|file| Flock::lock(file, FlockArg::LockSharedNonblock).is_err())
    }

    /// Return all snapshots, by boot, run and sequence.
    pub fn snapshots(&self) -> Result<Vec<SnapshotFile>, Failure> {
        let to_failure = |error: io::Error| Failure::of_file("read", &self.root, &error);
        let mut snapshots = Vec::new();
        for folder in fs::read_dir(&self.root).map_err(to_failure)?.flatten() {
            let boot = folder.file_name().to_string_lossy().into_owned();
            // What is not a directory, or gone meanwhile, holds no snapshots.
            let files = is_boot_id(&boot).then(|| fs::read_dir(folder.path()).ok()).flatten();
            for file in files.into_iter().flatten().flatten() {
                let (Some((run, sequence)), Ok(metadata)) =
                    (parse_name(&file.file_name().to_string_lossy()), file.metadata())
                else {
                    continue;
                };
                let time = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                snapshots.push(SnapshotFile { boot: boot.clone(), run, sequence, size: metadata.len(), time });
            }
        }
        snapshots.sort_by(|a, b| (&a.boot, a.run, a.sequence).cmp(&(&b.boot, b.run, b.sequence)));
        Ok(snapshots)
    }

    pub fn path(&self, snapshot: &SnapshotFile) -> PathBuf {
        self.root.join(snapshot.name())
    }
}

impl Writer {
    /// Open a store to write to, made if it isn't there, in a directory that is. Removes what a killed program left.
    pub fn open(root: &Path) -> Result<Writer, Failure> {
        match DirBuilder::new().mode(0o700).create(root) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Failure::of_file("make", root, &error));
            }
            _ => require_ours(root)?,
        }
        let path = root.join(LOCK);
        let options = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).clone();
        let lock = take_lock(|| regular::open_with(&path, &options)).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                let message = format!("another kdyno-pgod writes to {}", root.display());
                Failure::of_user(message, "`kdyno-pgod status` shows what it has; --directory names another place")
            }
            _ => Failure::of_file("lock", &path, &error),
        })?;
        let leftover = root.join(WRITING);
        match fs::remove_file(&leftover) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Failure::of_file("remove", &leftover, &error)),
            _ => Ok(Writer { store: Store { root: root.into() }, _lock: lock }),
        }
    }

    /// Make a snapshot appear, whole, on the disk.
    pub fn add(&self, boot: &str, run: u32, sequence: u64, content: &[u8]) -> Result<(), Failure> {
        self.write(boot, &file_name(run, sequence), content)
    }

    /// Return the current run of this boot; the first if the store has none.
    pub fn run(&self, boot: &str) -> Result<Run, Failure> {
        let path = self.store.root.join(boot).join(RUN);
        let text = match read_short(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Run { number: 1, reset: false }),
            read => read.map_err(|error| Failure::of_file("read", &path, &error))?,
        };
        let (number, reset) = text.trim().strip_suffix(" reset").map_or((text.trim(), false), |number| (number, true));
        let number = number.parse().map_err(|_| {
            Failure::of_surroundings(
                format!("{} does not hold the number of a run", path.display()),
                "remove that file",
            )
        })?;
        Ok(Run { number, reset })
    }

    pub fn set_run(&self, boot: &str, run: Run) -> Result<(), Failure> {
        let text = format!("{}{}\n", run.number, if run.reset { " reset" } else { "" });
        self.write(boot, RUN, text.as_bytes())
    }

    /// Remove a snapshot, and its boot's directory with the last one of a boot that is over.
    pub fn remove(&self, snapshot: &SnapshotFile, running: &str) -> Result<(), Failure> {
        let path = self.store.path(snapshot);
        fs::remove_file(&path).map_err(|error| Failure::of_file("remove", &path, &error))?;
        let folder = self.store.root.join(&snapshot.boot);
        let is_last =
            fs::read_dir(&folder).is_ok_and(|mut files| files.all(|file| file.is_ok_and(|f| f.file_name() == RUN)));
        if is_last && snapshot.boot != running {
            // What can't be removed is a small file or an empty directory.
            let _ = fs::remove_file(folder.join(RUN)).and_then(|()| fs::remove_dir(&folder));
            let _ = fs::remove_dir(&folder);
        }
        Ok(())
    }

    fn write(&self, boot: &str, name: &str, content: &[u8]) -> Result<(), Failure> {
        let folder = self.store.root.join(boot);
        let (writing, path) = (self.store.root.join(WRITING), folder.join(name));
        let result = write_durably(&writing, content).and_then(|()| {
            if DirBuilder::new().mode(0o700).create(&folder).is_ok() {
                sync(&self.store.root)?;
            }
            fs::rename(&writing, &path)?;
            sync(&folder)
        });
        result.map_err(|error| {
            // It takes the space that others may need; if it stays, the next one that is written takes its place.
            let _ = fs::remove_file(&writing);
            Failure::of_file("write", &path, &error)
        })
    }
}

/// Return a lock that nobody else has. `status` holds it for a moment, to see whether it can.
fn take_lock(open: impl Fn() -> io::Result<File>) -> io::Result<Flock<File>> {
    for _ in 0..LOCK_TRIES {
        if let Ok(lock) = Flock::lock(open()?, FlockArg::LockExclusiveNonblock) {
            return Ok(lock);
        }
        sleep(LOCK_PAUSE);
    }
    Flock::lock(open()?, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| error.into())
}

fn read_short(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    regular::open(path)?.take(LONGEST_RUN).read_to_string(&mut text)?;
    Ok(text)
}

fn write_durably(path: &Path, content: &[u8]) -> io::Result<()> {
    let options = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).clone();
    let mut file = regular::open_with(path, &options)?;
    file.write_all(content)?;
    file.sync_all()
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Refuse a directory that another user may change: root writes to no such directory.
fn require_ours(root: &Path) -> Result<(), Failure> {
    let metadata = fs::symlink_metadata(root).map_err(|error| Failure::of_file("read", root, &error))?;
    let reason = if !metadata.is_dir() {
        "it is not a directory"
    } else if metadata.uid() != nix::unistd::geteuid().as_raw() {
        "it belongs to another user"
    } else if metadata.mode() & 0o022 != 0 {
        "others may write to it"
    } else {
        return Ok(());
    };
    Err(Failure::of_user(
        format!("can't keep snapshots in {}: {reason}", root.display()),
        "--directory names another place",
    ))
}
