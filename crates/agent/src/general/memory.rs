//! general_memory: mappings, faults, heaps, and what a fork does to them.

use super::child::Child;
use super::load::{self, optional};
use super::mix::Mix;
use crate::measure::Recorder;
use crate::params::Params;
use crate::sys::file::{self, Mapping};
use crate::sys::{Failure, Stop, check};
use crate::test::{Metric, Test};
use kdyno_proto::{Kind, Suite};
use std::hint::black_box;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

pub static TEST: Test = Test {
    name: "general_memory",
    suite: Some(Suite::General),
    description: "train: mappings, page faults, heaps",
    params: &[],
    metrics: &[
        Metric {
            suffix: "private",
            kind: Kind::Latency,
            description: "map, touch, protect, move and unmap memory; copy it on write after forks",
            model_operations: 1,
            run: |recorder: &Recorder, _: &Params| load::measure(recorder, private),
        },
        Metric {
            suffix: "files",
            kind: Kind::Latency,
            description: "map files, shared and private; read, write, forget and unmap them",
            model_operations: 1,
            run: files,
        },
    ],
};

const PAGE: usize = 4096;

/// Memory without a file; unmapped when dropped.
struct Memory {
    start: *mut u8,
    pages: usize,
}

impl Memory {
    fn new(pages: usize, kind: libc::c_int) -> Result<Memory, Failure> {
        Memory::map(pages, kind | libc::MAP_ANONYMOUS, -1)
    }

    fn map(pages: usize, flags: libc::c_int, file: libc::c_int) -> Result<Memory, Failure> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping where the kernel likes.
        let start = unsafe { libc::mmap(null_mut(), pages * PAGE, access, flags, file, 0) };
        if start == libc::MAP_FAILED { Err(Failure::last("mmap()")) } else { Ok(Memory { start: start.cast(), pages }) }
    }

    /// Return where a page is read and written: not in the same cache line of each.
    fn place(&self, page: usize) -> *mut u8 {
        assert!(page < self.pages);
        self.start.wrapping_add(page * PAGE + page % 64 * 64)
    }

    /// Write the page's number.
    fn write(&self, page: usize) {
        // SAFETY: within the mapping; nobody writes to pages that are protected.
        unsafe { self.place(page).write_volatile(page as u8) };
    }

    fn read(&self, page: usize) -> u8 {
        // SAFETY: within the mapping, of which all may be read.
        unsafe { self.place(page).read_volatile() }
    }

    fn protect(&self, first: usize, pages: usize, access: libc::c_int) -> Result<(), Failure> {
        assert!(first + pages <= self.pages);
        // SAFETY: within the mapping, to which nothing refers.
        check("mprotect()", unsafe { libc::mprotect(self.start.add(first * PAGE).cast(), pages * PAGE, access) })?;
        Ok(())
    }

    fn advise(&self, first: usize, pages: usize, advice: libc::c_int) -> Result<(), Failure> {
        assert!(first + pages <= self.pages);
        // SAFETY: as above.
        check("madvise()", unsafe { libc::madvise(self.start.add(first * PAGE).cast(), pages * PAGE, advice) })?;
        Ok(())
    }

    fn resize(&mut self, pages: usize) -> Result<(), Failure> {
        // SAFETY: as above; it may move.
        let start = unsafe { libc::mremap(self.start.cast(), self.pages * PAGE, pages * PAGE, libc::MREMAP_MAYMOVE) };
        if start == libc::MAP_FAILED {
            return Err(Failure::last("mremap()"));
        }
        (self.start, self.pages) = (start.cast(), pages);
        Ok(())
    }

    fn sync(&self) -> Result<(), Failure> {
        // SAFETY: as above.
        check("msync()", unsafe { libc::msync(self.start.cast(), self.pages * PAGE, libc::MS_SYNC) })?;
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.start.cast(), self.pages * PAGE) };
    }
}

fn private(mix: &mut Mix) -> Result<(), Stop> {
    let mut kept = Vec::new();
    for _ in 0..16 {
        let mut memory = Memory::new(8 + mix.size(64), libc::MAP_PRIVATE)?;
        for _ in 0..memory.pages / 2 {
            match mix.below(3) {
                0 => _ = memory.read(mix.below(memory.pages)),
                _ => memory.write(mix.below(memory.pages)),
            }
        }
        match mix.below(4) {
            0 => {
                memory.protect(2, 4, libc::PROT_READ)?;
                memory.protect(2, 4, libc::PROT_READ | libc::PROT_WRITE)?;
                memory.write(3);
            }
            1 => {
                optional(memory.advise(1, 6, libc::MADV_DONTNEED))?;
                memory.write(2);
            }
            2 => {
                memory.resize(memory.pages * 2)?;
                memory.write(memory.pages - 1);
                memory.resize(memory.pages / 3)?;
            }
            _ => memory.write(7),
        }
        if mix.below(2) == 0 {
            kept.push(memory);
        }
    }
    heap(mix);
    let shared = Memory::new(16, libc::MAP_SHARED)?;
    for turn in 0..3 {
        shared.write(turn);
        let child = Child::spawn(|| {
            kept.iter().for_each(|memory| (0..memory.pages).step_by(3).for_each(|page| memory.write(page)));
            (0..12).for_each(|page| shared.write(page));
            Ok(())
        })?;
        // Whoever writes first copies.
        kept.iter().for_each(|memory| (0..memory.pages).step_by(5).for_each(|page| memory.write(page)));
        child.wait()?;
    }
    if (1..12).any(|page| shared.read(page) != page as u8) {
        return Err(Stop::Broken("shared memory was not written by the other process".into()));
    }
    Ok(())
}

/// Allocate small and large sizes by malloc, and keep them for a while: brk(2), and mappings.
fn heap(mix: &mut Mix) {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for _ in 0..64 {
        kept.push(vec![1; mix.size(1 << 18)]);
        if kept.len() > 12 {
            kept.swap_remove(mix.below(12));
        }
    }
    black_box(&kept);
}

fn files(recorder: &Recorder, _: &Params) -> Result<(), Stop> {
    let name = file::c_path(&recorder.scratch.join("mapped"));
    load::measure(recorder, |mix| {
        let pages = 24 + mix.below(64);
        let file = file::cached(&name, pages * PAGE)?;
        for turn in 0..6 {
            let kind = if turn % 2 == 0 { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
            let memory = Memory::map(pages, kind, file.as_raw_fd())?;
            for _ in 0..pages / 3 {
                match mix.below(3) {
                    0 => memory.write(mix.below(pages)),
                    _ => _ = memory.read(mix.below(pages)),
                }
            }
            match turn {
                0 => memory.sync()?,
                1 => optional(memory.advise(0, pages / 2, libc::MADV_WILLNEED))?,
                2 => {
                    optional(memory.advise(4, pages - 8, libc::MADV_DONTNEED))?;
                    (0..pages).for_each(|page| _ = memory.read(page));
                }
                3 => memory.protect(0, pages / 2, libc::PROT_READ)?,
                4 => optional(populated(file.as_raw_fd(), pages))?,
                _ => memory.write(0),
            }
        }
        // A whole file read through a mapping, as a search does.
        let mapping = Mapping::shared(file.as_raw_fd(), pages * PAGE, libc::PROT_READ)?;
        black_box(mapping.bytes().iter().filter(|&&byte| byte == b'\n').count());
        drop(mapping);
        // SAFETY: a C string.
        check("unlink(scratch file)", unsafe { libc::unlink(name.as_ptr()) })?;
        Ok(())
    })
}

/// Map all pages at once, and ask which are present.
fn populated(file: libc::c_int, pages: usize) -> Result<(), Failure> {
    let memory = Memory::map(pages, libc::MAP_SHARED | libc::MAP_POPULATE, file)?;
    let mut presence = vec![0_u8; pages];
    // SAFETY: a byte for each page.
    check("mincore()", unsafe { libc::mincore(memory.start.cast(), pages * PAGE, presence.as_mut_ptr()) })?;
    Ok(())
}
