//! Memory for all snapshots of a boot. It is there before the first: the kernel's page faults would be counted.

use std::ptr::null_mut;
use std::slice;

/// Bytes: 25 snapshots of the 4 MB that a kernel of the smallest configuration for the tests counts in.
const SIZE: usize = 128 << 20;

/// Items, one after the other.
pub struct Arena {
    memory: &'static mut [u8],
    /// Where each item ends.
    ends: Vec<usize>,
}

impl Arena {
    pub fn new() -> Result<Arena, String> {
        Arena::of(SIZE)
    }

    fn of(size: usize) -> Result<Arena, String> {
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE);
        // SAFETY: a new mapping.
        let memory = unsafe { libc::mmap(null_mut(), size, access, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(format!("no {} MB of memory for the counters", size >> 20));
        }
        // Benchmarks are forks of this process, and the kernel would copy page tables for each.
        // SAFETY: the mapping is ours.
        unsafe { libc::madvise(memory, size, libc::MADV_DONTFORK) };
        // SAFETY: the mapping has that size, is zeroed, and is never unmapped.
        let memory = unsafe { slice::from_raw_parts_mut(memory.cast(), size) };
        // A page for the ends, so that adding to them faults no more than adding to the items does.
        Ok(Arena { memory, ends: Vec::with_capacity(1 << 18) })
    }

    /// Add an item: `fill` writes to the start of the free memory, and returns how much.
    pub fn add(&mut self, fill: impl FnOnce(&mut [u8]) -> Result<usize, String>) -> Result<(), String> {
        let start = self.ends.last().copied().unwrap_or(0);
        let length = fill(&mut self.memory[start..])?;
        self.ends.push(start + length);
        Ok(())
    }

    /// Return an item by its index.
    pub fn item(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.memory[start..self.ends[index]]
    }
}

/// Read a whole file into free memory; return its length.
pub fn read_whole(file: &mut impl std::io::Read, free: &mut [u8], name: &str) -> Result<usize, String> {
    let mut length = 0;
    loop {
        if length == free.len() {
            return Err(format!("the counters of this kernel are more than {} MB in all snapshots", SIZE >> 20));
        }
        match file.read(&mut free[length..]) {
            Ok(0) => return Ok(length),
            Ok(more) => length += more,
            Err(error) => return Err(format!("{name}: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_lie_one_after_the_other() {
        let mut arena = Arena::of(4096).unwrap();
        for content in [&b"one"[..], b"", b"three"] {
            arena.add(|free| read_whole(&mut &content[..], free, "file")).unwrap();
        }
        assert_eq!([arena.item(0), arena.item(1), arena.item(2)], [&b"one"[..], b"", b"three"]);
    }

    #[test]
    fn more_than_there_is_memory_for_is_refused() {
        let mut arena = Arena::of(4096).unwrap();
        let content = vec![7; 4096];
        let message = arena.add(|free| read_whole(&mut &content[..], free, "file")).unwrap_err();
        assert!(message.contains("more than 128 MB"), "{message}");
    }
}
