//! What an instrumented kernel counted: snapshots before the tests and after each, sent when nothing is measured any more.
//!
//! Taking a snapshot runs kernel code, too, which is counted. So the first two are taken one right after the other: how
//! they differ is what a snapshot adds. All take the same calls, and memory that is there before the first.

mod arena;
mod gcov;
mod memory;
mod send;

use kdyno_proto::Counters;
use std::fs::File;

use arena::Arena;

/// Something that is read the same way each time.
trait Source {
    /// Return the names of the items, in the order in which they are read.
    fn names(&self) -> &[String];
    /// Read all items into the memory; their lengths are added to it.
    fn read(&mut self, arena: &mut Arena) -> Result<(), String>;
}

/// The snapshots of one boot.
pub struct Snapshots {
    source: Box<dyn Source>,
    arena: Arena,
    /// The test that ran before each.
    after: Vec<String>,
    port: File,
    failed: Option<String>,
}

impl Snapshots {
    /// Take the two before the first test. `tests` is how many more there will be.
    pub fn begin(counters: &Counters, tests: usize, port: File) -> Result<Snapshots, String> {
        let source: Box<dyn Source> = match counters {
            Counters::Gcov => Box::new(gcov::Gcov::open(gcov::DEBUGFS.as_ref())?),
            Counters::Memory { address, bytes } => Box::new(memory::Memory::open(memory::KCORE, *address, *bytes)?),
        };
        let after = Vec::with_capacity(tests + 2);
        let mut snapshots = Snapshots { source, arena: Arena::new()?, after, port, failed: None };
        snapshots.take("");
        snapshots.take("");
        Ok(snapshots)
    }

    /// Take one after the test of this name. Failures are reported when all is sent.
    pub fn take(&mut self, after: &str) {
        if self.failed.is_none() {
            self.failed = self.source.read(&mut self.arena).err();
            self.after.push(after.into());
        }
    }

    /// Send what differs from the snapshot before, and the end.
    pub fn send(mut self) -> Result<(), String> {
        if let Some(message) = self.failed {
            return Err(message);
        }
        send::send(&self.arena, self.source.names(), &self.after, &mut self.port)
    }
}
