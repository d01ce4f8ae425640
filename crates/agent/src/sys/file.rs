//! Files and mappings for the benchmarks; nothing here is inside a measured loop unless it is one raw call.

use super::{Failure, check, fd};
use std::arch::asm;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

pub fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("we made this path, and it holds no NUL")
}

/// Call `open(2)`, named in the failure as `call`.
pub fn open(call: &'static str, path: &CStr, flags: libc::c_int) -> Result<OwnedFd, Failure> {
    // SAFETY: `path` is a C string.
    fd::owned(call, unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o600) })
}

/// Write a new file of `bytes` bytes, so that all of it is in the page cache.
pub fn cached(path: &CStr, bytes: usize) -> Result<OwnedFd, Failure> {
    let file = open("open(scratch file)", path, libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC)?;
    let block = vec![0x5a_u8; bytes.min(64 << 10)];
    let mut rest = bytes;
    while rest > 0 {
        let part = rest.min(block.len());
        fd::write_all("write(scratch file)", file.as_raw_fd(), &block[..part])?;
        rest -= part;
    }
    Ok(file)
}

/// What [`sum`] adds up in one go, in bytes.
const BLOCK: usize = 1024;

/// Return the sum of a buffer's 8-byte words: what LMBench does with every byte it moves, so that none is moved for
/// nothing.
///
/// One instruction a word, as LMBench's unrolled loop is compiled, whatever this compiler makes of loops; and as there a
/// block's sum doesn't wait for that of the block before.
#[inline(never)]
pub fn sum(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut sum = 0_u64;
    for block in blocks {
        let of_block: u64;
        // SAFETY: reads the words of the block, and writes nothing but their sum.
        unsafe {
            asm!(
                ".set kdyno_word, 0",
                ".rept {words}",
                "add {sum}, qword ptr [{block} + kdyno_word]",
                ".set kdyno_word, kdyno_word + 8",
                ".endr",
                words = const BLOCK / 8,
                sum = inout(reg) 0_u64 => of_block,
                block = in(reg) block.as_ptr(),
                options(pure, readonly, nostack),
            );
        }
        sum = sum.wrapping_add(of_block);
    }
    let (words, _) = rest.as_chunks::<8>();
    words.iter().fold(sum, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)))
}

/// A shared mapping of a file from its start; unmapped when dropped.
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

/// Bytes that one page table of the lowest level maps.
const TABLE: usize = 2 << 20;

impl Mapping {
    /// Fill the room below which the next mapping of `bytes` would be put, so that it will end where a page table ends.
    ///
    /// Otherwise the random layout of the address space decides how many page tables each mapping makes and frees, and
    /// whether it finds one that is there already. Where that room is a small gap, it is filled, and the next one looked
    /// at.
    pub fn fill_before(bytes: usize) -> Result<Vec<Mapping>, Failure> {
        let mut filling = Vec::new();
        loop {
            let trial = Mapping::reserve(std::ptr::null_mut(), bytes)?;
            let end = trial.start.as_ptr().wrapping_add(bytes);
            drop(trial);
            match end as usize % TABLE {
                0 => return Ok(filling),
                // No more than the trial took: what is below may belong to another mapping.
                rest => {
                    let part = rest.min(bytes);
                    filling.push(Mapping::reserve(end.wrapping_sub(part), part)?);
                }
            }
        }
    }

    /// Reserve addresses that nothing else will take, near `place` if it isn't null; none of them can be accessed.
    fn reserve(place: *mut u8, bytes: usize) -> Result<Mapping, Failure> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping; `place` is a hint.
        let start = unsafe { libc::mmap(place.cast(), bytes, libc::PROT_NONE, flags, -1, 0) };
        Mapping::of("mmap(anonymous)", start, bytes)
    }

    fn of(call: &'static str, start: *mut libc::c_void, bytes: usize) -> Result<Mapping, Failure> {
        match NonNull::new(start.cast::<u8>()) {
            Some(first) if start != libc::MAP_FAILED => Ok(Mapping { start: first, bytes }),
            _ => Err(Failure::last(call)),
        }
    }

    /// Map a file, shared; `access` is as for mmap(2).
    pub fn shared(file: RawFd, bytes: usize, access: libc::c_int) -> Result<Mapping, Failure> {
        // SAFETY: a new mapping where the kernel likes.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file, 0) };
        Mapping::of("mmap(file)", start, bytes)
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for as long as self lives; nobody writes to the file meanwhile.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// Read the byte at `offset`, for real.
    #[inline(always)]
    pub fn peek(&self, offset: usize) -> u8 {
        debug_assert!(offset < self.bytes);
        // SAFETY: inside the mapping.
        unsafe { self.start.add(offset).read_volatile() }
    }

    /// Write the byte at `offset`, for real, to a mapping that may be written to.
    #[inline(always)]
    pub fn poke(&self, offset: usize, value: u8) {
        debug_assert!(offset < self.bytes);
        // SAFETY: inside the mapping.
        unsafe { self.start.add(offset).write_volatile(value) }
    }

    /// Forget the page table entries; the pages stay in the page cache.
    pub fn forget(&self) -> Result<(), Failure> {
        // SAFETY: a shared file mapping loses nothing.
        check("madvise(MADV_DONTNEED)", unsafe {
            libc::madvise(self.start.as_ptr().cast(), self.bytes, libc::MADV_DONTNEED)
        })?;
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping, and no borrow of it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_filling_a_mapping_ends_where_a_page_table_ends() {
        let bytes = 512 << 10;
        let _filling = Mapping::fill_before(bytes).unwrap();
        let next = Mapping::reserve(std::ptr::null_mut(), bytes).unwrap();
        assert_eq!((next.start.as_ptr() as usize + bytes) % TABLE, 0);
    }

    #[test]
    fn a_gap_that_ends_in_no_page_table_s_end_is_filled_too() {
        let bytes = 512 << 10;
        let _filling = Mapping::fill_before(bytes).unwrap();
        // A gap that holds a mapping, but not all that is missing to the end of a page table.
        let mut pieces: Vec<Mapping> = (0..3).map(|_| Mapping::reserve(std::ptr::null_mut(), bytes).unwrap()).collect();
        drop(pieces.remove(1));
        let _more = Mapping::fill_before(bytes).unwrap();
        let next = Mapping::reserve(std::ptr::null_mut(), bytes).unwrap();
        assert_eq!((next.start.as_ptr() as usize + bytes) % TABLE, 0);
    }

    #[test]
    fn the_sum_is_that_of_all_whole_words_and_wraps() {
        let bytes: Vec<u8> = (0..2 * BLOCK + 8 * 3 + 7).map(|i| (i % 251) as u8).collect();
        let (words, _) = bytes.as_chunks::<8>();
        let expected = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)));
        assert_eq!(sum(&bytes), expected);
        assert_eq!(sum(&[0xff; 16]), u64::MAX - 1);
    }
}
