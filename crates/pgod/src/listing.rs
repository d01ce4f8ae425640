//! What there is: printed by `status`, and the first file of what `send` sends.

use crate::VERSION;
use crate::failure::Failure;
use crate::kernel::Kernel;
use crate::snapshot::{self, FORMAT};
use crate::store::{SnapshotFile, Store};
use serde::Serialize;
use std::path::Path;

#[derive(Debug, Serialize)]
pub struct Listing {
    pub v: u32,
    pub version: &'static str,
    pub directory: String,
    /// Whether a kdyno-pgod takes snapshots now.
    pub running: bool,
    /// The bytes of all snapshots.
    pub bytes: u64,
    /// The runs by the time of their last snapshot.
    pub runs: Vec<Run>,
    /// Files that are not snapshots, or that this version can't read.
    pub unreadable: Vec<String>,
}

/// A run, as its last snapshot shows it.
#[derive(Debug, Serialize)]
pub struct Run {
    pub boot: String,
    pub run: u32,
    pub kernel: Kernel,
    /// How many snapshots of it there are.
    pub snapshots: u64,
    /// How many there have been in this boot.
    pub sequence: u64,
    /// Seconds since 1970.
    #[serde(rename = "taken")]
    pub time: u64,
    pub milliseconds: u64,
    pub objects: u64,
    pub counter_bytes: u64,
    /// The file of the last snapshot, below the directory, and its size.
    pub file: String,
    pub file_bytes: u64,
}

impl Listing {
    pub fn read(store: &Store, directory: &Path) -> Result<Listing, Failure> {
        let snapshots = store.snapshots()?;
        let (mut runs, mut unreadable) = (Vec::new(), Vec::new());
        for run in snapshots.chunk_by(|a, b| (&a.boot, a.run) == (&b.boot, b.run)) {
            let last = run.last().expect("chunks aren't empty");
            match snapshot::description(&store.path(last)) {
                Some(description)
                    if (&description.boot, description.run, description.sequence)
                        == (&last.boot, last.run, last.sequence) =>
                {
                    runs.push(describe_run(last, run.len(), description));
                }
                _ => unreadable.push(last.name()),
            }
        }
        runs.sort_by_key(|run| (run.time, run.sequence));
        Ok(Listing {
            v: FORMAT,
            version: VERSION,
            directory: directory.display().to_string(),
            running: store.has_writer(),
            bytes: snapshots.iter().map(|snapshot| snapshot.size).sum(),
            runs,
            unreadable,
        })
    }
}

fn describe_run(last: &SnapshotFile, snapshots: usize, description: snapshot::Description) -> Run {
    Run {
        boot: description.boot,
        run: description.run,
        kernel: description.kernel,
        snapshots: snapshots as u64,
        sequence: description.sequence,
        time: description.time,
        milliseconds: description.milliseconds,
        objects: description.objects,
        counter_bytes: description.bytes,
        file: last.name(),
        file_bytes: last.size,
    }
}
