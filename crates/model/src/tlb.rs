//! The modelled TLBs: which table has a page's translation, and what an operating system makes them forget.
//!
//! A translation is global or local. Writing CR3 drops local ones alone (Intel SDM, volume 3, 4.10.4.1; AMD APM, volume
//! 2, 5.5.2). Which pages of Linux are global is in arch/x86/mm/pti.c and arch/x86/mm/init.c.

use crate::cache::Lru;
use crate::events::{Counts, Event};
use crate::geometry::{self, Geometry};

const PAGE_BITS: u32 = 12;
const HUGE_BITS: u32 = 21;
/// Distinguishes a 2 MB page from a 4 kB page in the second TLB.
const HUGE_TAG: u64 = 1 << 60;
/// Distinguishes a translation that a write of CR3 drops.
const LOCAL_TAG: u64 = 1 << 61;

const KERNEL_HALF: u64 = 1 << 63;
/// Where the kernel's image is (__START_KERNEL_map); modules and more come behind it.
const IMAGE: std::ops::Range<u64> = 0xffff_ffff_8000_0000..0xffff_ffff_a000_0000;
/// The direct map of memory, without KASLR and with page tables of four or five levels.
const DIRECT_MAP: std::ops::Range<u64> = 0xffff_8880_0000_0000..0xffff_c880_0000_0000;
/// The array of `struct page`.
const VMEMMAP: std::ops::Range<u64> = 0xffff_ea00_0000_0000..0xffff_eb00_0000_0000;

/// Return whether the kernel maps an address with a page of 2 MB. The kernel's direct map of memory, its array of
/// `struct page` and its own image are mapped with 2 MB pages (Documentation/arch/x86/x86_64/mm.rst;
/// vmemmap_populate_hugepages() of arch/x86/mm/init_64.c); everything else of the kernel's is taken to be 4 kB.
fn is_huge(address: u64) -> bool {
    DIRECT_MAP.contains(&address) || IMAGE.contains(&address) || VMEMMAP.contains(&address)
}

/// What an instruction makes the TLBs forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// CR3 was written: what is not global.
    Local,
    /// The same, where user code enters the kernel or is gone back to: the page tables are isolated from each other.
    Isolation,
    /// CR4 was written, which is how Linux drops all without INVPCID (native_flush_tlb_global()), or INVPCID ran, whose
    /// kind is in a register that can't be read.
    All,
    /// INVLPG ran; of which page, a plugin of this interface can't know.
    One,
}

pub struct Tlbs {
    code: First,
    data: First,
    second: Lru,
    /// Where that holds no translations of code.
    second_of_code: Option<Lru>,
    /// The keys of local translations that came in since the last flush, some perhaps twice.
    local: Vec<u64>,
    /// So many translations there can be in all.
    entries: usize,
    /// The kernel was seen to isolate its page tables from user code (PTI): its own pages are not global.
    is_isolated: bool,
    /// The processor has PCID.
    has_pcid: bool,
    latest_user_page: Option<u64>,
}

/// The first level, of instructions or of data.
struct First {
    small: Lru,
    huge: Lru,
    last_page: u64,
}

impl First {
    fn new(tlb: &geometry::Tlb) -> First {
        First {
            small: Lru::fully_associative(tlb.entries_4k),
            huge: Lru::fully_associative(tlb.entries_2m),
            last_page: u64::MAX,
        }
    }

    fn forget(&mut self, key: u64) {
        self.small.forget(key);
        self.huge.forget(key);
        self.last_page = u64::MAX;
    }

    fn forget_all(&mut self) {
        self.small.forget_all();
        self.huge.forget_all();
        self.last_page = u64::MAX;
    }

    /// Return whether it had the translation with this key; from now on it has.
    #[inline(always)]
    fn touch(&mut self, key: u64) -> bool {
        if key & HUGE_TAG == 0 { self.small.touch(key) } else { self.huge.touch(key) }
    }
}

impl Tlbs {
    pub fn new(geometry: &Geometry) -> Tlbs {
        let first = [&geometry.itlb, &geometry.dtlb].map(|tlb| tlb.entries_4k + tlb.entries_2m);
        let new_second = |tlb: &geometry::SecondTlb| Lru::new(tlb.entries / tlb.ways, tlb.ways);
        let second_of_code = geometry.l2_itlb.as_ref().map_or(0, |tlb| tlb.entries as usize);
        Tlbs {
            code: First::new(&geometry.itlb),
            data: First::new(&geometry.dtlb),
            second: new_second(&geometry.stlb),
            second_of_code: geometry.l2_itlb.as_ref().map(new_second),
            local: Vec::new(),
            entries: first[0] + first[1] + geometry.stlb.entries as usize + second_of_code,
            is_isolated: false,
            has_pcid: geometry.pcid,
            latest_user_page: None,
        }
    }

    /// Return which table has the translation of data, as in [`crate::hardware::Reach`]. `is_large` is asked of user
    /// addresses alone: whether the page has 2 MB.
    #[inline(always)]
    pub fn data(&mut self, address: u64, counts: &mut Counts, is_large: impl FnOnce() -> bool) -> u8 {
        let page = address >> PAGE_BITS;
        if page == self.data.last_page {
            return 0;
        }
        self.data.last_page = page;
        let is_user = address < KERNEL_HALF;
        let key = key(address, self.is_isolated, if is_user { is_large() } else { is_huge(address) });
        if is_user {
            self.latest_user_page = Some(key);
        }
        if self.data.touch(key) {
            return 0;
        }
        counts[Event::dtlb_misses as usize] += 1;
        counts[Event::dtlb_misses_2m as usize] += u64::from(key & HUGE_TAG != 0);
        let is_there = self.second.touch(key);
        self.beyond_first(key, is_there, counts)
    }

    /// Return which table has the translation of code.
    #[inline(always)]
    pub fn code(&mut self, address: u64, counts: &mut Counts) -> u8 {
        let page = address >> PAGE_BITS;
        if page == self.code.last_page {
            return 0;
        }
        self.code.last_page = page;
        // Without PCID, Linux leaves its own text global even where it isolates its tables (pti_clone_kernel_text()).
        let key = key(address, self.is_isolated && self.has_pcid, is_huge(address));
        if self.code.touch(key) {
            return 0;
        }
        counts[Event::itlb_misses as usize] += 1;
        let is_there = self.second_of_code.as_mut().unwrap_or(&mut self.second).touch(key);
        self.beyond_first(key, is_there, counts)
    }

    fn beyond_first(&mut self, key: u64, is_in_second: bool, counts: &mut Counts) -> u8 {
        if is_in_second {
            return 1;
        }
        counts[Event::stlb_misses as usize] += 1;
        counts[Event::stlb_misses_2m as usize] += u64::from(key & HUGE_TAG != 0);
        if key & LOCAL_TAG != 0 {
            if self.local.len() > 2 * self.entries {
                self.leave_out_evicted();
            }
            self.local.push(key);
        }
        2
    }

    #[cold]
    fn leave_out_evicted(&mut self) {
        self.local.sort_unstable();
        self.local.dedup();
        let tables = [&self.second, &self.code.small, &self.code.huge, &self.data.small, &self.data.huge];
        let tables: Vec<_> = tables.into_iter().chain(&self.second_of_code).collect();
        self.local.retain(|key| tables.iter().any(|table| table.holds(*key)));
    }

    pub fn flush(&mut self, flush: Flush) {
        match flush {
            Flush::Local => self.forget_local(),
            Flush::Isolation if !self.is_isolated => {
                self.is_isolated = true;
                self.forget_all();
            }
            // With PCID the two page tables of a task have numbers of their own, and Linux says that nothing is to be
            // dropped when it goes from one to the other (the NOFLUSH bit in arch/x86/entry/calling.h).
            Flush::Isolation if self.has_pcid => {}
            Flush::Isolation => self.forget_local(),
            Flush::All => self.forget_all(),
            // One translation goes: that of the page of user code's that the kernel touched last.
            Flush::One => {
                if let Some(key) = self.latest_user_page.take() {
                    self.forget(key);
                }
            }
        }
    }

    fn forget_local(&mut self) {
        for key in std::mem::take(&mut self.local) {
            self.forget(key);
        }
    }

    fn forget(&mut self, key: u64) {
        self.code.forget(key);
        self.data.forget(key);
        self.second.forget(key);
        if let Some(second) = &mut self.second_of_code {
            second.forget(key);
        }
    }

    fn forget_all(&mut self) {
        self.code.forget_all();
        self.data.forget_all();
        self.second.forget_all();
        if let Some(second) = &mut self.second_of_code {
            second.forget_all();
        }
        self.local.clear();
    }
}

/// Return the key of a translation.
#[inline(always)]
fn key(address: u64, is_isolated: bool, is_large: bool) -> u64 {
    let page = if is_large { address >> HUGE_BITS | HUGE_TAG } else { address >> PAGE_BITS };
    if address < KERNEL_HALF || is_isolated { page | LOCAL_TAG } else { page }
}

#[cfg(test)]
mod tests;
