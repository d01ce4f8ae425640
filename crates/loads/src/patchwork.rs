//! Pages that are mapped, moved, protected and discarded piece by piece, and what each of them should hold.

use crate::failure::{self, Failure};
use crate::fork;
use crate::userfault;
use nix::errno::Errno;
use nix::libc;
use nix::sys::mman::{
    MRemapFlags, MapFlags, MmapAdvise, ProtFlags, madvise, mlock, mmap_anonymous, mprotect, mremap, munlock, munmap,
};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::ptr::NonNull;

const READ_WRITE: ProtFlags = ProtFlags::PROT_READ.union(ProtFlags::PROT_WRITE);

/// A range of addresses that is ours alone; pages are named by their numbers in it.
pub struct Patchwork {
    start: NonNull<c_void>,
    page: usize,
    /// What fills a page, word for word; 0 in one that was never written. None: nothing is mapped.
    expected: Vec<Option<u64>>,
}

/// Which NUMA nodes pages are from.
#[derive(Clone, Copy, Debug)]
pub enum Policy {
    Default,
    Interleaved,
    SecondNode,
}

/// Where a thread finds the pages that it alone writes.
#[derive(Clone, Copy)]
struct Place(NonNull<c_void>);

// SAFETY: an address; who writes through it says so there.
unsafe impl Send for Place {}

impl Patchwork {
    /// Map pages of zeros. `page` is the size of one in bytes.
    pub fn new(pages: usize, page: usize) -> Result<Patchwork, Failure> {
        let refused = |errno| failure::call_failure(&format!("map {pages} pages"), errno);
        let bytes = pages.checked_mul(page).and_then(NonZeroUsize::new).ok_or_else(|| refused(Errno::ENOMEM))?;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let start = unsafe { mmap_anonymous(None, bytes, READ_WRITE, MapFlags::MAP_PRIVATE) }.map_err(refused)?;
        Ok(Patchwork { start, page, expected: vec![Some(0); pages] })
    }

    pub fn pages(&self) -> usize {
        self.expected.len()
    }

    pub fn all_pages(&self) -> Range<usize> {
        0..self.pages()
    }

    fn address(&self, number: usize) -> NonNull<c_void> {
        // SAFETY: a page of the range, or its end.
        unsafe { self.start.byte_add(number * self.page) }
    }

    fn bytes(&self, pages: &Range<usize>) -> usize {
        pages.len() * self.page
    }

    fn is_mapped(&self, pages: &Range<usize>) -> bool {
        self.expected[pages.clone()].iter().all(Option::is_some)
    }

    /// Fill each page that is mapped with what `mark` makes of its number; the last page first if `backwards`.
    pub fn write(&mut self, pages: Range<usize>, backwards: bool, mark: impl Fn(usize) -> u64) {
        let (first, end) = (pages.start, pages.end);
        for number in pages {
            let number = if backwards { first + end - 1 - number } else { number };
            if self.expected[number].is_some() {
                fill(self.address(number), self.page, mark(number));
                self.expected[number] = Some(mark(number));
            }
        }
    }

    /// Write by several threads at once: each writes the pages whose number it has as the remainder.
    pub fn write_in_threads(&mut self, pages: Range<usize>, threads: usize, mark: impl Fn(usize) -> u64 + Sync) {
        let mine = |thread: usize| pages.clone().filter(move |number| number % threads == thread);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let mapped = mine(thread).filter(|number| self.expected[*number].is_some());
                let marks: Vec<(Place, u64)> =
                    mapped.map(|number| (Place(self.address(number)), mark(number))).collect();
                let page = self.page;
                scope.spawn(move || marks.into_iter().for_each(|(page_start, mark)| fill(page_start.0, page, mark)));
            }
        });
        for number in pages {
            self.expected[number] = self.expected[number].map(|_| mark(number));
        }
    }

    /// Return whether each page that is mapped holds what it should, in every word.
    pub fn verify(&self, pages: Range<usize>) -> Result<(), Failure> {
        for number in pages {
            let Some(mark) = self.expected[number] else { continue };
            // SAFETY: mapped for reading, aligned to a page, and written by nobody while self is borrowed.
            let words =
                unsafe { std::slice::from_raw_parts(self.address(number).as_ptr().cast::<u64>(), self.page / 8) };
            if let Some(word) = words.iter().position(|word| *word != mark) {
                let value = words[word];
                return Err(failure::wrong_result(format!(
                    "word {word} of page {number} is {value:#x}, and not {mark:#x}"
                )));
            }
        }
        Ok(())
    }

    /// Give the pages back to the kernel: they are zeros when they are next touched.
    pub fn discard(&mut self, pages: Range<usize>) -> Result<bool, Failure> {
        let is_done = self.advise(&pages, MmapAdvise::MADV_DONTNEED, "discard pages")?;
        if is_done {
            self.expected[pages].fill(Some(0));
        }
        Ok(is_done)
    }

    /// Ask the kernel to swap the pages out. Without swap nothing happens.
    pub fn page_out(&self, pages: Range<usize>) -> Result<bool, Failure> {
        self.advise(&pages, MmapAdvise::MADV_PAGEOUT, "swap pages out")
    }

    /// Discard the pages, and serve the faults of their next touch: one fault for each page, which gets its mark then.
    /// False where a page isn't mapped, or where faults can't be served.
    pub fn serve(&mut self, pages: Range<usize>, mark: impl Fn(usize) -> u64 + Sync) -> Result<bool, Failure> {
        if !self.discard(pages.clone())? {
            return Ok(false);
        }
        let (start, bytes, page) = (self.address(pages.start), self.bytes(&pages), self.page);
        let mark_of = |index| mark(pages.start + index);
        let served = userfault::serve(start, bytes, page, mark_of, || {
            for number in pages.clone() {
                fill(self.address(number), size_of::<u64>(), mark(number));
            }
        })?;
        let Some(served) = served else { return Ok(false) };
        for number in pages.clone() {
            self.expected[number] = Some(mark(number));
        }
        self.verify(pages.clone())?;
        match served == pages.len() {
            true => Ok(true),
            false => Err(failure::wrong_result(format!("{served} faults were served for {} pages", pages.len()))),
        }
    }

    /// Tell the kernel that pages may be huge, or may not.
    pub fn advise_size(&self, pages: Range<usize>, may_be_huge: bool) -> Result<bool, Failure> {
        let advice = if may_be_huge { MmapAdvise::MADV_HUGEPAGE } else { MmapAdvise::MADV_NOHUGEPAGE };
        self.advise(&pages, advice, "say how large pages may be")
    }

    /// Set which NUMA nodes the pages are from when they are next touched. False where one isn't mapped, or where the
    /// kernel has no such policy or node.
    pub fn place(&self, pages: Range<usize>, policy: Policy) -> Result<bool, Failure> {
        if !self.is_mapped(&pages) {
            return Ok(false);
        }
        let (mode, nodes) = match policy {
            Policy::Default => (libc::MPOL_DEFAULT, 0_u64),
            Policy::Interleaved => (libc::MPOL_INTERLEAVE, 0b11),
            Policy::SecondNode => (libc::MPOL_BIND, 0b10),
        };
        let (start, bytes) = (self.address(pages.start).as_ptr(), self.bytes(&pages));
        // SAFETY: pages of ours; the mask has 64 bits, and is read only.
        match Errno::result(unsafe { libc::syscall(libc::SYS_mbind, start, bytes, mode, &raw const nodes, 64, 0) }) {
            Ok(_) => Ok(true),
            Err(Errno::EINVAL | Errno::ENOSYS | Errno::EPERM) => Ok(false),
            Err(errno) => Err(failure::call_failure("choose a NUMA node", errno)),
        }
    }

    /// Advise the kernel; false where a page isn't mapped, or where the kernel has no such advice.
    fn advise(&self, pages: &Range<usize>, advice: MmapAdvise, name: &str) -> Result<bool, Failure> {
        if !self.is_mapped(pages) {
            return Ok(false);
        }
        // SAFETY: pages of ours, none of them borrowed; what they hold then is on record.
        match unsafe { madvise(self.address(pages.start), self.bytes(pages), advice) } {
            Ok(()) => Ok(true),
            Err(Errno::EINVAL) => Ok(false),
            Err(errno) => Err(failure::call_failure(name, errno)),
        }
    }

    /// Protect the pages from writing, read them, and let them be written again. False where one isn't mapped.
    pub fn protect(&mut self, pages: Range<usize>) -> Result<bool, Failure> {
        if !self.is_mapped(&pages) {
            return Ok(false);
        }
        for protection in [ProtFlags::PROT_NONE, ProtFlags::PROT_READ, READ_WRITE] {
            // SAFETY: pages of ours, none of them borrowed, and not touched while they can't be.
            unsafe { mprotect(self.address(pages.start), self.bytes(&pages), protection) }
                .map_err(|errno| failure::call_failure("protect pages", errno))?;
            if protection == ProtFlags::PROT_READ {
                self.verify(pages.clone())?;
            }
        }
        Ok(true)
    }

    /// Lock the pages into memory, which touches each, and unlock them. False where one isn't mapped, or where this
    /// user may not lock so many.
    pub fn lock(&mut self, pages: Range<usize>) -> Result<bool, Failure> {
        if !self.is_mapped(&pages) {
            return Ok(false);
        }
        // SAFETY: pages of ours.
        match unsafe { mlock(self.address(pages.start), self.bytes(&pages)) } {
            Ok(()) => {}
            Err(Errno::EPERM | Errno::ENOMEM | Errno::EAGAIN) => return Ok(false),
            Err(errno) => return Err(failure::call_failure("lock pages", errno)),
        }
        self.verify(pages.clone())?;
        // SAFETY: as above.
        unsafe { munlock(self.address(pages.start), self.bytes(&pages)) }
            .map_err(|errno| failure::call_failure("unlock pages", errno))?;
        Ok(true)
    }

    /// Leave a hole.
    pub fn unmap(&mut self, pages: Range<usize>) -> Result<(), Failure> {
        // SAFETY: addresses of ours, none of them borrowed, and ours again right afterwards.
        unsafe { munmap(self.address(pages.start), self.bytes(&pages)) }
            .map_err(|errno| failure::call_failure("unmap pages", errno))?;
        self.keep(pages)
    }

    /// Keep the addresses of a hole: nobody else may be given them, such as a new thread for its stack.
    fn keep(&mut self, pages: Range<usize>) -> Result<(), Failure> {
        self.map_as(&pages, ProtFlags::PROT_NONE)?;
        self.expected[pages].fill(None);
        Ok(())
    }

    /// Map new pages of zeros, whatever was there before.
    pub fn map(&mut self, pages: Range<usize>) -> Result<(), Failure> {
        self.map_as(&pages, READ_WRITE)?;
        self.expected[pages].fill(Some(0));
        Ok(())
    }

    fn map_as(&self, pages: &Range<usize>, protection: ProtFlags) -> Result<(), Failure> {
        let refused = |errno| failure::call_failure("map pages again", errno);
        let bytes = NonZeroUsize::new(self.bytes(pages)).ok_or_else(|| refused(Errno::EINVAL))?;
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_FIXED;
        // SAFETY: addresses of ours, none of them borrowed.
        unsafe { mmap_anonymous(Some(self.address(pages.start).addr()), bytes, protection, flags) }.map_err(refused)?;
        Ok(())
    }

    /// Move pages to `place`, and leave a hole. False where they overlap or where the kernel sees several
    /// mappings in them, which it doesn't move at once.
    pub fn relocate(&mut self, pages: Range<usize>, place: usize) -> Result<bool, Failure> {
        let target = place..place + pages.len();
        let is_apart = target.end <= pages.start || pages.end <= target.start;
        if !is_apart || target.end > self.pages() || !self.is_mapped(&pages) {
            return Ok(false);
        }
        self.unmap(target.clone())?;
        let flags = MRemapFlags::MREMAP_MAYMOVE | MRemapFlags::MREMAP_FIXED;
        let bytes = self.bytes(&pages);
        // SAFETY: addresses of ours, none of them borrowed; the target is a hole.
        match unsafe { mremap(self.address(pages.start), bytes, bytes, flags, Some(self.address(place))) } {
            Ok(_) => {
                self.expected.copy_within(pages.clone(), place);
                self.keep(pages).map(|()| true)
            }
            Err(Errno::EFAULT) => self.keep(target).map(|()| false),
            Err(errno) => Err(failure::call_failure("move pages", errno)),
        }
    }

    /// Fork a child that reads all pages and writes some, while this process writes the same ones: neither sees what
    /// the other wrote.
    pub fn fork(&mut self, pages: Range<usize>, mark: impl Fn(usize) -> u64) -> Result<(), Failure> {
        match fork::split()? {
            Some(child) => {
                self.write(pages.clone(), false, &mark);
                let verified = self.verify(self.all_pages());
                fork::wait(child)?;
                verified
            }
            None => {
                let before = self.verify(self.all_pages());
                self.write(pages, true, |number| !mark(number));
                let verified = before.and_then(|()| self.verify(self.all_pages()));
                std::process::exit(verified.map_or_else(|failure| failure.exit_code.into(), |()| 0))
            }
        }
    }
}

impl Drop for Patchwork {
    fn drop(&mut self) {
        // SAFETY: addresses of ours, borrowed by no one; holes are not an error.
        let _ = unsafe { munmap(self.start, self.bytes(&self.all_pages())) };
    }
}

/// Write a page that is mapped for writing, and that nobody else touches.
fn fill(place: NonNull<c_void>, page: usize, mark: u64) {
    // SAFETY: as the caller has it; pages are aligned.
    unsafe { std::slice::from_raw_parts_mut(place.as_ptr().cast::<u64>(), page / 8) }.fill(mark);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_patchwork() -> Patchwork {
        let mut patchwork = Patchwork::new(64, 4096).unwrap();
        patchwork.write(0..64, false, |number| number as u64 + 1);
        patchwork
    }

    #[test]
    fn pages_hold_what_was_written_until_they_are_discarded() {
        let mut patchwork = written_patchwork();
        assert_eq!(patchwork.discard(8..16), Ok(true));
        assert_eq!(patchwork.expected[7..9], [Some(8), Some(0)]);
        assert_eq!(patchwork.verify(0..64), Ok(()));
    }

    #[test]
    fn a_page_that_changed_behind_our_back_is_found() {
        let patchwork = written_patchwork();
        fill(patchwork.address(5), 8, 7);
        let failure = patchwork.verify(0..64).unwrap_err();
        assert!(failure.to_string().contains("word 0 of page 5 is 0x7, and not 0x6"), "{failure}");
        assert_eq!(failure.exit_code, 1);
    }

    #[test]
    fn each_page_whose_faults_are_served_gets_its_mark_in_a_fault_of_its_own() {
        let mut patchwork = written_patchwork();
        if patchwork.serve(10..30, |number| number as u64 + 500).unwrap() {
            assert_eq!((patchwork.expected[9], patchwork.expected[10]), (Some(10), Some(510)));
        }
        assert_eq!(patchwork.verify(0..64), Ok(()));
    }

    #[test]
    fn moved_pages_take_what_they_hold_along_and_leave_a_hole() {
        let mut patchwork = written_patchwork();
        assert_eq!(patchwork.relocate(0..8, 20), Ok(true));
        assert_eq!((patchwork.expected[0], patchwork.expected[20], patchwork.expected[28]), (None, Some(1), Some(29)));
        assert_eq!(patchwork.verify(0..64), Ok(()));
        assert_eq!(patchwork.discard(0..2), Ok(false));
        patchwork.map(0..8).unwrap();
        assert_eq!(patchwork.discard(0..2), Ok(true));
        assert_eq!(patchwork.relocate(0..8, 4), Ok(false));
    }

    #[test]
    fn a_child_and_its_parent_write_pages_of_their_own() {
        let mut patchwork = written_patchwork();
        assert_eq!(patchwork.protect(0..64), Ok(true));
        assert_eq!(patchwork.page_out(0..64).map(|_| ()), Ok(()));
        assert_eq!(patchwork.advise_size(0..32, false).map(|_| ()), Ok(()));
        for policy in [Policy::Interleaved, Policy::SecondNode, Policy::Default] {
            assert_eq!(patchwork.place(16..48, policy).map(|_| ()), Ok(()), "{policy:?}");
        }
        patchwork.write_in_threads(0..64, 3, |number| number as u64 + 100);
        assert_eq!(patchwork.fork(8..24, |number| number as u64 + 200), Ok(()));
        assert_eq!(patchwork.verify(0..64), Ok(()));
        assert_eq!((patchwork.expected[0], patchwork.expected[8]), (Some(100), Some(208)));
    }
}
