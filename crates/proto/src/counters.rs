//! What an instrumented kernel counted, on its way out of a guest: a line of JSON before the bytes of each item.

use serde::{Deserialize, Serialize};

use crate::VERSION;

/// The virtio-serial port on which counters leave a guest.
pub const COUNTERS_PORT: &str = "org.kdyno.counters";

/// What is read of a kernel's counters, before the tests and after each of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Counters {
    /// The files that a kernel with CONFIG_GCOV_KERNEL shows in debugfs.
    Gcov,
    /// Memory of the kernel, by /proc/kcore.
    Memory { address: u64, bytes: u64 },
}

/// Stands before an item's bytes, on a line of its own.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct CountersItem<'a> {
    v: u64,
    /// 0 and 1 are taken one right after the other, before the first test; 2 is taken after it, and so on.
    pub snapshot: usize,
    /// The test that ran before it; empty for 0 and 1.
    pub after: &'a str,
    /// A path, or what else the item is.
    pub name: &'a str,
    pub bytes: usize,
}

/// The last line, which proves how many snapshots there were.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct CountersEnd {
    v: u64,
    pub snapshots: usize,
}

impl<'a> CountersItem<'a> {
    pub fn new(snapshot: usize, after: &'a str, name: &'a str, bytes: usize) -> CountersItem<'a> {
        CountersItem { v: VERSION, snapshot, after, name, bytes }
    }

    pub fn to_line(&self) -> String {
        line(self)
    }
}

impl CountersEnd {
    pub fn new(snapshots: usize) -> CountersEnd {
        CountersEnd { v: VERSION, snapshots }
    }

    pub fn to_line(&self) -> String {
        line(self)
    }
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers and texts are JSON") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_and_the_end_are_lines_of_json() {
        let item = CountersItem::new(2, "lat_pipe", "fs/\"pipe\n.gcda", 52);
        let expected = r#"{"v":1,"snapshot":2,"after":"lat_pipe","name":"fs/\"pipe\n.gcda","bytes":52}"#;
        assert_eq!(item.to_line(), format!("{expected}\n"));
        assert_eq!(CountersEnd::new(3).to_line(), "{\"v\":1,\"snapshots\":3}\n");
    }
}
