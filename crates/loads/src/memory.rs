//! What of a process is in memory, as the kernel counts it.

use serde::{Deserialize, Serialize};
use std::fs;

/// Bytes, from /proc/self/smaps_rollup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    pub resident: u64,
    pub anonymous: u64,
    /// The part of the anonymous memory that is in huge pages that one entry of the page table maps.
    pub anon_huge_pages: u64,
    /// The part of files and of shared memory that is mapped so.
    pub file_huge_pages: u64,
    pub shared_huge_pages: u64,
}

impl Memory {
    /// Return the memory of this process; None where /proc isn't mounted or the kernel lacks CONFIG_PROC_PAGE_MONITOR.
    pub fn read() -> Option<Memory> {
        Memory::parse(&fs::read_to_string("/proc/self/smaps_rollup").ok()?)
    }

    fn parse(rollup: &str) -> Option<Memory> {
        let bytes = |name: &str| -> Option<u64> {
            let value = rollup.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
        };
        Some(Memory {
            resident: bytes("Rss")?,
            anonymous: bytes("Anonymous")?,
            anon_huge_pages: bytes("AnonHugePages").unwrap_or(0),
            file_huge_pages: bytes("FilePmdMapped").unwrap_or(0),
            shared_huge_pages: bytes("ShmemPmdMapped").unwrap_or(0),
        })
    }
}

impl std::ops::Add for Memory {
    type Output = Memory;

    fn add(self, other: Memory) -> Memory {
        Memory {
            resident: self.resident + other.resident,
            anonymous: self.anonymous + other.anonymous,
            anon_huge_pages: self.anon_huge_pages + other.anon_huge_pages,
            file_huge_pages: self.file_huge_pages + other.file_huge_pages,
            shared_huge_pages: self.shared_huge_pages + other.shared_huge_pages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLLUP: &str = "\
00400000-7ffd1000 ---p 00000000 00:00 0                          [rollup]
Rss:               25700 kB
Anonymous:         24900 kB
AnonHugePages:     22528 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         4 kB
";

    #[test]
    fn kilobytes_become_bytes() {
        let memory = Memory::parse(ROLLUP).unwrap();
        assert_eq!((memory.resident, memory.anonymous), (25700 << 10, 24900 << 10));
        assert_eq!((memory.anon_huge_pages, memory.file_huge_pages, memory.shared_huge_pages), (22 << 20, 4096, 0));
    }

    #[test]
    fn a_kernel_that_does_not_say_is_no_kernel_without_memory() {
        assert_eq!(Memory::parse("Pss: 12 kB\n"), None);
    }
}
