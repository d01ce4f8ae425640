//! The modelled memory hardware: what an access or a fetch costs beyond the first cache.

use crate::cache::Lru;
use crate::events::{Counts, Event};
use crate::geometry::{self, Geometry};
use crate::pipeline::Reach;
use crate::prefetcher::Prefetcher;

const LINE_BITS: u32 = 6;
const PAGE_BITS: u32 = 12;
const HUGE_BITS: u32 = 21;
/// Distinguishes a 2 MB page from a 4 kB page in the second TLB.
const HUGE_TAG: u64 = 1 << 60;

/// The kernel's direct map of memory and the kernel's own image are mapped with 2 MB pages
/// (Documentation/arch/x86/x86_64/mm.rst, without KASLR); everything else is taken to be 4 kB.
fn is_huge(address: u64) -> bool {
    (0xffff_8880_0000_0000..0xffff_c880_0000_0000).contains(&address)
        || (0xffff_ffff_8000_0000..0xffff_ffff_a000_0000).contains(&address)
}

pub struct Hardware {
    pub instructions: Side,
    pub data: Side,
    l2: Lru,
    llc: Lru,
    second_tlb: Lru,
    prefetcher: Prefetcher,
}

/// The first level, of instructions or of data.
pub struct Side {
    cache: Lru,
    small: Lru,
    huge: Lru,
    last_line: u64,
    last_page: u64,
}

impl Side {
    fn new(cache: &geometry::Cache, tlb: &geometry::Tlb) -> Side {
        Side {
            cache: new_cache(cache),
            small: Lru::fully_associative(tlb.entries_4k),
            huge: Lru::fully_associative(tlb.entries_2m),
            last_line: u64::MAX,
            last_page: u64::MAX,
        }
    }
}

fn new_cache(cache: &geometry::Cache) -> Lru {
    Lru::new((cache.size >> LINE_BITS) / cache.ways, cache.ways)
}

const KERNEL_HALF: u64 = 1 << 63;

/// Where an address of a program might be in memory: its pages lie anywhere.
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
            instructions: Side::new(&geometry.l1i, &geometry.itlb),
            data: Side::new(&geometry.l1d, &geometry.dtlb),
            l2: new_cache(&geometry.l2),
            llc: new_cache(&geometry.llc),
            second_tlb: Lru::new(geometry.stlb.entries / geometry.stlb.ways, geometry.stlb.ways),
            prefetcher: Prefetcher::new(geometry.prefetcher.streams),
        }
    }

    /// A load or a store; `place` is asked only when the first cache doesn't have the line.
    #[inline(always)]
    pub fn access(&mut self, address: u64, counts: &mut Counts, place: impl FnOnce() -> Place) -> Reach {
        let mut reach = Reach::default();
        let page = address >> PAGE_BITS;
        if page != self.data.last_page {
            self.data.last_page = page;
            reach.translation = translate(&mut self.data, &mut self.second_tlb, address, Event::dtlb_misses, counts);
        }
        let line = address >> LINE_BITS;
        if line != self.data.last_line {
            self.data.last_line = line;
            if !self.data.cache.touch(line) {
                reach.level = self.data_miss(line, counts, place());
            }
        }
        reach
    }

    /// Which level has the line, as in [`Reach`].
    fn data_miss(&mut self, line: u64, counts: &mut Counts, place: Place) -> u8 {
        let physical = match place {
            Place::Memory(physical) => physical >> LINE_BITS,
            Place::Device => {
                self.data.cache.forget_latest(line);
                self.data.last_line = u64::MAX;
                counts[Event::io_exits as usize] += 1;
                return 0;
            }
        };
        let ahead = self.prefetcher.missed(line);
        let in_l2 = self.l2.touch(physical);
        let in_llc = in_l2 || self.llc.touch(physical);
        if ahead {
            counts[Event::prefetched as usize] += 1;
            counts[Event::prefetched_far as usize] += u64::from(!in_l2);
            counts[Event::prefetched_memory as usize] += u64::from(!in_llc);
            return 0;
        }
        counts[Event::l1d_misses as usize] += 1;
        counts[Event::l2_misses as usize] += u64::from(!in_l2);
        counts[Event::llc_misses as usize] += u64::from(!in_llc);
        1 + u8::from(!in_l2) + u8::from(!in_llc)
    }

    /// A block of code from its first to its last byte.
    #[inline(always)]
    pub fn fetch(&mut self, first: u64, last: u64, counts: &mut Counts) -> Reach {
        let mut reach = Reach::default();
        let page = first >> PAGE_BITS;
        if page != self.instructions.last_page {
            self.instructions.last_page = page;
            reach.translation =
                translate(&mut self.instructions, &mut self.second_tlb, first, Event::itlb_misses, counts);
        }
        for line in first >> LINE_BITS..=last >> LINE_BITS {
            if line != self.instructions.last_line {
                self.instructions.last_line = line;
                if !self.instructions.cache.touch(line) {
                    reach.level = reach.level.max(self.fetch_miss(line, counts));
                }
            }
        }
        reach
    }

    fn fetch_miss(&mut self, line: u64, counts: &mut Counts) -> u8 {
        // The image is at a constant distance from where it is in memory (__START_KERNEL_map).
        let address = line << LINE_BITS;
        let is_kernel = address >= KERNEL_HALF;
        let physical = if is_kernel { address & 0x7fff_ffff } else { scattered(address) } >> LINE_BITS;
        counts[Event::l1i_misses as usize] += 1;
        if self.l2.touch(physical) {
            return 1;
        }
        counts[Event::l2_misses as usize] += 1;
        if self.llc.touch(physical) {
            return 2;
        }
        counts[Event::llc_misses as usize] += 1;
        3
    }
}

/// Which table has the translation, as in [`Reach`].
fn translate(side: &mut Side, second: &mut Lru, address: u64, miss: Event, counts: &mut Counts) -> u8 {
    let (found, key) = if is_huge(address) {
        (side.huge.touch(address >> HUGE_BITS), address >> HUGE_BITS | HUGE_TAG)
    } else {
        (side.small.touch(address >> PAGE_BITS), address >> PAGE_BITS)
    };
    if found {
        return 0;
    }
    counts[miss as usize] += 1;
    if second.touch(key) {
        return 1;
    }
    counts[Event::stlb_misses as usize] += 1;
    2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EVENTS;
    use crate::geometry::tests::SMALL;

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

    #[test]
    fn the_direct_map_is_translated_by_huge_pages() {
        let counts = counts_of((0..512).map(|i| 0xffff_8880_0000_0000 + 4096 * i));
        assert_eq!(counts[Event::dtlb_misses as usize], 1);
        let counts = counts_of((0..512).map(|i| 0x7000_0000 + 4096 * i));
        assert_eq!(counts[Event::dtlb_misses as usize], 512);
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
