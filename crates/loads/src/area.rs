//! Large arrays, each a mapping of its own: no allocator decides which pages they have.

use crate::failure::{self, Failure};
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// What the kernel is told of an area before it is touched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Advice {
    Nothing,
    HugePages,
    NoHugePages,
}

/// Numbers that are valid, and zero, where all bytes are zero.
pub trait Number: Copy + number::Sealed {}

mod number {
    pub trait Sealed {}
    impl Sealed for u8 {}
    impl Sealed for u32 {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for [f64; 2] {}
}

impl<T: Copy + number::Sealed> Number for T {}

/// An array of zeros that has no pages until it is touched.
pub struct Area<T: Number> {
    start: NonNull<c_void>,
    length: usize,
    element: PhantomData<T>,
}

impl<T: Number> Area<T> {
    pub fn new(length: usize, advice: Advice) -> Result<Area<T>, Failure> {
        let refused = |errno| failure::call_failure(&format!("map {length} numbers of {} B", size_of::<T>()), errno);
        let bytes = length.checked_mul(size_of::<T>()).and_then(NonZeroUsize::new);
        let bytes = bytes.ok_or_else(|| refused(nix::errno::Errno::ENOMEM))?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let start = unsafe { mmap_anonymous(None, bytes, protection, MapFlags::MAP_PRIVATE) }.map_err(refused)?;
        let area = Area { start, length, element: PhantomData };
        area.advise(advice)?;
        Ok(area)
    }

    fn advise(&self, advice: Advice) -> Result<(), Failure> {
        let (advice, name) = match advice {
            Advice::Nothing => return Ok(()),
            Advice::HugePages => (MmapAdvise::MADV_HUGEPAGE, "ask for huge pages"),
            Advice::NoHugePages => (MmapAdvise::MADV_NOHUGEPAGE, "refuse huge pages"),
        };
        // SAFETY: the mapping's own range; this advice changes no content.
        unsafe { madvise(self.start, self.bytes(), advice) }.map_err(|errno| match errno {
            nix::errno::Errno::EINVAL => Failure::of_surroundings(
                format!("can't {name}: this kernel has no transparent huge pages"),
                "leave --advise out, or boot a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
            ),
            errno => failure::call_failure(name, errno),
        })
    }

    fn bytes(&self) -> usize {
        self.length * size_of::<T>()
    }
}

impl<T: Number> Deref for Area<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: mapped as long as self lives, ours alone, aligned to a page, and zeros are valid numbers.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.length) }
    }
}

impl<T: Number> DerefMut for Area<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and self is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.length) }
    }
}

impl<T: Number> Drop for Area<T> {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, borrowed by no one.
        let _ = unsafe { munmap(self.start, self.bytes()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_of_zeros_and_keeps_what_is_written() {
        let mut area: Area<f64> = Area::new(1000, Advice::Nothing).unwrap();
        assert_eq!((area.len(), area.iter().all(|number| *number == 0.0)), (1000, true));
        area[999] = 2.5;
        assert_eq!(area.iter().sum::<f64>(), 2.5);
    }

    #[test]
    fn more_than_there_is_is_refused_with_a_way_out() {
        let failure = Area::<f64>::new(usize::MAX / 8, Advice::Nothing).err().unwrap();
        assert_eq!(failure.exit_code, 3);
        assert!(failure.to_string().contains("--size"), "{failure}");
    }
}
