//! How large the pages of user code are, determined by where they are in memory.
//!
//! A plugin can't read page tables, but it is told where in memory each access goes. 2 MB that one entry of a page table
//! maps are in one piece, at a multiple of 2 MB; 4 kB pages rarely do. So a 2 MB stretch of addresses is taken to be a
//! large page as long as every access to it was as far into 2 MB of memory as into the stretch, and always the same 2 MB.
//! Of small pages that may be anywhere, the first one of 512 stretches passes for a part of a large page, until another
//! page of it is touched. Small pages that the kernel took in order from 2 MB of free memory, in step with their
//! addresses, pass for good; so nobody asks before the kernel has made a large page.

const HUGE_BITS: u32 = 21;
const WITHIN: u64 = (1 << HUGE_BITS) - 1;
/// Of an access and where it goes, what agrees in any case: it is within a page.
const PAGE_BITS: u32 = 12;
/// Stretches that are remembered: 8 GB in a row.
const REMEMBERED: usize = 4096;

#[derive(Clone, Copy)]
struct Stretch {
    /// Its address, in units of 2 MB.
    number: u64,
    /// Where its memory is, in the same units.
    frame: u64,
    is_large: bool,
    /// It counts as long as this is the present generation.
    generation: u64,
}

/// What was seen of 2 MB stretches since the translations were dropped.
pub struct Pages {
    stretches: Vec<Stretch>,
    generation: u64,
}

impl Default for Pages {
    fn default() -> Pages {
        let never = Stretch { number: 0, frame: 0, is_large: false, generation: 0 };
        Pages { stretches: vec![never; REMEMBERED], generation: 1 }
    }
}

impl Pages {
    /// Return whether an access to an address, which goes to a place in memory, is to a page of 2 MB, as far as is
    /// known.
    pub fn is_large(&mut self, address: u64, physical: u64) -> bool {
        let (number, frame) = (address >> HUGE_BITS, physical >> HUGE_BITS);
        let in_step = (address & WITHIN) >> PAGE_BITS == (physical & WITHIN) >> PAGE_BITS;
        let stretch = &mut self.stretches[number as usize % REMEMBERED];
        if (stretch.number, stretch.generation) != (number, self.generation) {
            *stretch = Stretch { number, frame, is_large: in_step, generation: self.generation };
        }
        stretch.is_large &= in_step && stretch.frame == frame;
        stretch.is_large
    }

    /// Forget the pages: other page tables may hold now.
    pub fn forget(&mut self) {
        self.generation += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn two_megabytes_in_one_piece_are_a_large_page() {
        let mut pages = Pages::default();
        assert!((0..512).all(|page| pages.is_large(64 * MB + 4096 * page + 8, 6 * MB + 4096 * page + 8)));
    }

    #[test]
    fn memory_out_of_step_or_of_another_piece_is_of_small_pages_and_stays_so() {
        let mut pages = Pages::default();
        assert!(!pages.is_large(64 * MB, 6 * MB + 4096));
        assert!(!pages.is_large(64 * MB, 6 * MB));
        assert!(pages.is_large(66 * MB, 8 * MB));
        assert!(!pages.is_large(66 * MB + 4096, 10 * MB + 4096));
        assert!(!pages.is_large(66 * MB, 8 * MB));
    }

    #[test]
    fn other_page_tables_are_looked_at_anew() {
        let mut pages = Pages::default();
        assert!(!pages.is_large(64 * MB, 6 * MB + 4096));
        pages.forget();
        assert!(pages.is_large(64 * MB, 6 * MB));
    }

    #[test]
    fn stretches_that_share_a_place_in_the_table_are_not_taken_for_each_other() {
        let mut pages = Pages::default();
        let far = 2 * MB * REMEMBERED as u64;
        assert!(!pages.is_large(64 * MB, 6 * MB + 4096));
        assert!(pages.is_large(64 * MB + far, 8 * MB));
    }
}
