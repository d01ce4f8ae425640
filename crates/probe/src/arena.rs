//! Memory of known alignment in pages of 4 kB: large pages would make a TLB's misses go away on some hosts only.

use std::ptr::null_mut;
use std::slice::from_raw_parts_mut;

pub struct Arena {
    start: *mut u8,
    bytes: usize,
}

impl Arena {
    /// Return zeroed memory with every page present.
    pub fn new(bytes: usize) -> Self {
        Self::map(bytes, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// Return memory as `new` does, for instructions.
    pub fn executable(bytes: usize) -> Self {
        Self::map(bytes, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC)
    }

    fn map(bytes: usize, protection: i32) -> Self {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping.
        let start = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
        assert!(start != libc::MAP_FAILED, "no memory for {bytes} bytes");
        // SAFETY: the mapping's own range. A kernel without large pages refuses, which is as good.
        unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
        let mut arena = Arena { start: start.cast(), bytes };
        // Reading would map the one page of zeros everywhere.
        arena.bytes().iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        arena.bytes().iter_mut().step_by(4096).for_each(|byte| *byte = 0);
        arena
    }

    pub fn address(&self) -> usize {
        self.start as usize
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: ours alone, as long as self is borrowed.
        unsafe { from_raw_parts_mut(self.start, self.bytes) }
    }

    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: as above; a page's start is aligned for any type.
        unsafe { from_raw_parts_mut(self.start.cast(), self.bytes / 8) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: mapped in `map`, borrowed by no one.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::Arena;

    #[test]
    fn an_arena_is_zeroed_and_starts_at_a_page() {
        let mut arena = Arena::new(10_000);
        assert_eq!(arena.address() % 4096, 0);
        assert!(arena.words().iter().all(|word| *word == 0));
        assert_eq!(arena.bytes().len(), 10_000);
    }
}
