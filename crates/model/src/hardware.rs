//! The modelled memory hardware: what an access or a fetch costs beyond the first cache.

use crate::cache::Lru;
use crate::events::{Counts, Event};
use crate::frontend::Beyond;
use crate::geometry::{self, Geometry};
use crate::pages::Pages;
use crate::prefetcher::Prefetcher;
use crate::tlb::{Flush, Tlbs};

const LINE_BITS: u32 = 6;
const PAGE_BITS: u32 = 12;

/// Where an access found its line and its translation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reach {
    /// 0: first cache, or fetched ahead; 1: L2; 2: last level; 3: memory.
    pub level: u8,
    /// It was fetched ahead: in the first cache just now.
    pub is_ahead: bool,
    /// Its address came out of a load that had missed the first cache itself.
    pub is_chained: bool,
    /// 0: first TLB; 1: second; 2: page tables.
    pub translation: u8,
}

impl Reach {
    /// Return whether the first cache got the line for this access.
    #[inline(always)]
    pub fn is_new(&self) -> bool {
        self.level > 0 || self.is_ahead
    }
}

pub struct Hardware {
    data: Side,
    l2: Lru,
    llc: Lru,
    tlbs: Tlbs,
    /// None: all user code's pages are taken to be small.
    pages: Option<Pages>,
    prefetcher: Prefetcher,
    code_prefetcher: Prefetcher,
}

/// The first cache, of data.
struct Side {
    cache: Lru,
    last_line: u64,
}

fn new_cache(cache: &geometry::Cache) -> Lru {
    Lru::new((cache.size >> LINE_BITS) / cache.ways, cache.ways)
}

const KERNEL_HALF: u64 = 1 << 63;

/// Return where an address of a program might be in memory: its pages may be anywhere.
pub fn scattered(address: u64) -> u64 {
    let page = (address >> PAGE_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30;
    page << PAGE_BITS | address & ((1 << PAGE_BITS) - 1)
}

/// Where a line is in memory.
pub enum Place {
    Memory(u64),
    /// A device's register: never cached.
    Device,
}

impl Hardware {
    pub fn new(geometry: &Geometry) -> Hardware {
        Hardware {
            data: Side { cache: new_cache(&geometry.l1d), last_line: u64::MAX },
            l2: new_cache(&geometry.l2),
            llc: new_cache(&geometry.llc),
            tlbs: Tlbs::new(geometry),
            pages: None,
            prefetcher: Prefetcher::new(geometry.prefetcher.streams),
            code_prefetcher: Prefetcher::new(geometry.prefetcher.streams),
        }
    }

    /// Access memory by a load or a store; `place` is asked when the first cache doesn't have the line, and, where
    /// pages are distinguished, at each step to another page.
    #[inline(always)]
    pub fn access(&mut self, address: u64, counts: &mut Counts, place: impl Fn() -> Place) -> Reach {
        let pages = &mut self.pages;
        let is_large = || {
            pages.as_mut().is_some_and(|pages| match place() {
                Place::Memory(physical) => pages.is_large(address, physical),
                Place::Device => false,
            })
        };
        let mut reach = Reach { translation: self.tlbs.data(address, counts, is_large), ..Reach::default() };
        let line = address >> LINE_BITS;
        if line != self.data.last_line {
            self.data.last_line = line;
            if !self.data.cache.touch(line) {
                (reach.level, reach.is_ahead) = self.data_miss(line, counts, place());
            }
        }
        reach
    }

    /// Distinguish large pages of user code from small ones from now on, by where they are in memory.
    pub fn tell_pages(&mut self) {
        self.pages.get_or_insert_default();
    }

    /// Execute user code of a page; return which table has its translation, as in [`Reach`].
    #[inline(always)]
    pub fn user_fetch(&mut self, address: u64, counts: &mut Counts) -> u8 {
        self.tlbs.code(address, counts)
    }

    pub fn flush(&mut self, flush: Flush) {
        self.tlbs.flush(flush);
        if let (Some(pages), Flush::Local | Flush::All) = (&mut self.pages, flush) {
            pages.forget();
        }
    }

    /// Return which level has the line, and whether it was fetched ahead, as in [`Reach`].
    fn data_miss(&mut self, line: u64, counts: &mut Counts, place: Place) -> (u8, bool) {
        let physical = match place {
            Place::Memory(physical) => physical >> LINE_BITS,
            Place::Device => {
                self.data.cache.forget_latest(line);
                self.data.last_line = u64::MAX;
                counts[Event::io_exits as usize] += 1;
                return (0, false);
            }
        };
        let ahead = self.prefetcher.missed(line);
        let in_l2 = self.l2.touch(physical);
        let in_llc = in_l2 || self.llc.touch(physical);
        if ahead {
            counts[Event::prefetched as usize] += 1;
            counts[Event::prefetched_far as usize] += u64::from(!in_l2);
            counts[Event::prefetched_memory as usize] += u64::from(!in_llc);
            return (0, true);
        }
        counts[Event::l1d_misses as usize] += 1;
        counts[Event::l2_misses as usize] += u64::from(!in_l2);
        counts[Event::llc_misses as usize] += u64::from(!in_llc);
        (1 + u8::from(!in_l2) + u8::from(!in_llc), false)
    }
}

impl Beyond for Hardware {
    #[inline(always)]
    fn translate_fetch(&mut self, address: u64, counts: &mut Counts) -> u8 {
        self.tlbs.code(address, counts)
    }

    fn fetch_miss(&mut self, line: u64, counts: &mut Counts) -> u8 {
        let level = self.fetch_ahead(line);
        counts[Event::l1i_misses as usize] += 1;
        counts[Event::l2_misses as usize] += u64::from(level > 1);
        counts[Event::llc_misses as usize] += u64::from(level > 2);
        level
    }

    fn fetch_ahead(&mut self, line: u64) -> u8 {
        // The image is at a constant distance from where it is in memory (__START_KERNEL_map).
        let address = line << LINE_BITS;
        let is_kernel = address >= KERNEL_HALF;
        let physical = if is_kernel { address & 0x7fff_ffff } else { scattered(address) } >> LINE_BITS;
        if self.l2.touch(physical) {
            return 1;
        }
        let in_llc = self.llc.touch(physical);
        match (self.code_prefetcher.missed(line), in_llc) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EVENTS;
    use crate::geometry::SMALL;

    fn counts_of(addresses: impl Iterator<Item = u64>) -> Counts {
        let mut hardware = Hardware::new(&Geometry::parse(SMALL).unwrap());
        let mut counts = [0; EVENTS];
        for address in addresses {
            hardware.access(address, &mut counts, || Place::Memory(address));
        }
        counts
    }

    #[test]
    fn what_fits_misses_once() {
        let counts = counts_of((0..10).flat_map(|_| [0, 64, 4224, 4288]));
        assert_eq!(counts[Event::l1d_misses as usize], 4);
        assert_eq!(counts[Event::llc_misses as usize], 4);
        assert_eq!(counts[Event::dtlb_misses as usize], 2);
    }

    #[test]
    fn what_no_cache_has_misses_at_every_level() {
        let counts = counts_of([64, 1 << 20, 1 << 30].into_iter());
        for event in [Event::l1d_misses, Event::l2_misses, Event::llc_misses] {
            assert_eq!(counts[event as usize], 3);
        }
    }

    #[test]
    fn a_stream_is_prefetched() {
        let counts = counts_of((0..1000).map(|i| 64 * i));
        assert_eq!(counts[Event::l1d_misses as usize] + counts[Event::prefetched as usize], 1000);
        assert!(counts[Event::prefetched as usize] >= 975);
    }

    /// Return the translations that only the page tables have, of the second of two turns through 8 pages of code, with
    /// as many of data in between.
    fn walks(geometry: &str) -> u64 {
        let mut hardware = Hardware::new(&Geometry::parse(geometry).unwrap());
        let mut walks = 0;
        for turn in 0..2 {
            let mut counts = [0; EVENTS];
            (0..8).for_each(|page| _ = hardware.translate_fetch(4096 * page, &mut counts));
            walks = counts[Event::stlb_misses as usize];
            assert_eq!(counts[Event::itlb_misses as usize], 8, "{turn}");
            (0..8).for_each(|page| _ = hardware.access(4096 * (100 + page), &mut counts, || Place::Memory(0)));
        }
        walks
    }

    #[test]
    fn data_does_not_push_translations_of_code_out_of_a_tlb_of_their_own() {
        assert_eq!(walks(SMALL), 8);
        assert_eq!(walks(&SMALL.replace("stlb = {", "l2_itlb = { entries = 8, ways = 2 }\nstlb = {")), 0);
    }

    /// Return the dTLB misses of two turns through 8 MB of user code's, and those of 2 MB pages among them.
    fn misses_of_pages(tells_pages: bool, physical: fn(u64) -> u64) -> [u64; 2] {
        let mut hardware = Hardware::new(&Geometry::parse(SMALL).unwrap());
        if tells_pages {
            hardware.tell_pages();
        }
        let mut counts = [0; EVENTS];
        for page in (0..2048).chain(0..2048) {
            let address = (1 << 30) + 4096 * page;
            hardware.access(address, &mut counts, || Place::Memory(physical(address)));
        }
        [Event::dtlb_misses, Event::dtlb_misses_2m].map(|event| counts[event as usize])
    }

    #[test]
    fn large_pages_of_user_code_have_entries_of_their_own_where_pages_are_told_apart() {
        assert_eq!(misses_of_pages(true, |address| address), [8, 8]);
        assert_eq!(misses_of_pages(false, |address| address), [4096, 0]);
        assert_eq!(misses_of_pages(true, |address| address + 4096), [4096, 0]);
    }

    #[test]
    fn a_device_is_an_exit_each_time() {
        let mut hardware = Hardware::new(&Geometry::parse(SMALL).unwrap());
        let mut counts = [0; EVENTS];
        for _ in 0..3 {
            hardware.access(0xfeb0_0000, &mut counts, || Place::Device);
        }
        assert_eq!(counts[Event::io_exits as usize], 3);
    }
}
