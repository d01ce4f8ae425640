use super::*;
use crate::events::EVENTS;
use crate::geometry::SMALL;

const USER: u64 = 0x7000_0000;
const DIRECT: u64 = 0xffff_8880_0000_0000;
const VMALLOC: u64 = 0xffff_c900_0000_0000;
const TEXT: u64 = 0xffff_ffff_8100_0000;

/// TLBs, and what they counted.
struct Seen {
    tlbs: Tlbs,
    counts: Counts,
}

impl Seen {
    fn new(has_pcid: bool) -> Seen {
        let text =
            SMALL.replace("pcid = false", &format!("pcid = {has_pcid}")).replace("entries_4k = 2", "entries_4k = 8");
        Seen { tlbs: Tlbs::new(&Geometry::parse(&text).unwrap()), counts: [0; EVENTS] }
    }

    /// Return the walks of page tables that a fetch and loads from these addresses take.
    fn walks(&mut self, addresses: &[u64]) -> u64 {
        let before = self.counts[Event::stlb_misses as usize];
        self.tlbs.code(TEXT, &mut self.counts);
        for address in addresses {
            self.tlbs.data(*address, &mut self.counts, || false);
        }
        self.counts[Event::stlb_misses as usize] - before
    }
}

#[test]
fn the_direct_map_and_the_array_of_pages_are_translated_by_huge_pages() {
    for (start, expected) in [(DIRECT, 1), (0xffff_ea00_0000_0000, 1), (0xffff_eb00_0000_0000, 512), (USER, 512)] {
        let mut walked = Seen::new(false);
        for page in 0..512 {
            walked.tlbs.data(start + 4096 * page, &mut walked.counts, || false);
        }
        assert_eq!(walked.counts[Event::dtlb_misses as usize], expected, "{start:x}");
    }
}

#[test]
fn a_write_of_cr3_drops_what_is_not_global() {
    let mut walked = Seen::new(false);
    assert_eq!(walked.walks(&[USER, DIRECT, VMALLOC]), 4);
    assert_eq!(walked.walks(&[USER, DIRECT, VMALLOC]), 0);
    walked.tlbs.flush(Flush::Local);
    assert_eq!(walked.walks(&[USER, DIRECT, VMALLOC]), 1);
    walked.tlbs.flush(Flush::All);
    assert_eq!(walked.walks(&[USER, DIRECT, VMALLOC]), 4);
}

#[test]
fn a_page_is_not_found_after_a_flush_because_it_was_the_last_one() {
    let mut walked = Seen::new(false);
    walked.walks(&[USER]);
    walked.tlbs.flush(Flush::Local);
    assert_eq!(walked.walks(&[USER]), 1);
    walked.tlbs.flush(Flush::One);
    assert_eq!(walked.walks(&[USER]), 1);
}

#[test]
fn isolated_page_tables_cost_the_kernels_translations_too_but_not_its_text_unless_there_is_pcid() {
    let mut walked = Seen::new(false);
    walked.tlbs.flush(Flush::Isolation);
    assert_eq!(walked.walks(&[USER, DIRECT, VMALLOC]), 4);
    walked.tlbs.flush(Flush::Isolation);
    assert_eq!(walked.walks(&[USER, DIRECT, VMALLOC]), 3);
    let mut walked = Seen::new(true);
    walked.tlbs.flush(Flush::Isolation);
    assert_eq!(walked.walks(&[USER, DIRECT, VMALLOC]), 4);
    walked.tlbs.flush(Flush::Isolation);
    assert_eq!(walked.walks(&[USER, DIRECT, VMALLOC]), 0);
    walked.tlbs.flush(Flush::Local);
    assert_eq!(walked.walks(&[USER, DIRECT, VMALLOC]), 4);
}

#[test]
fn invlpg_drops_one_page_of_user_codes() {
    let mut walked = Seen::new(false);
    assert_eq!(walked.walks(&[USER, USER + 4096, DIRECT]), 4);
    walked.tlbs.flush(Flush::One);
    assert_eq!(walked.walks(&[USER, USER + 4096, DIRECT]), 1);
}

#[test]
fn what_is_remembered_for_a_flush_does_not_grow_without_end() {
    let mut walked = Seen::new(false);
    for page in 0..100_000 {
        walked.tlbs.data(USER + 4096 * page, &mut walked.counts, || false);
    }
    assert!(walked.tlbs.local.len() <= 2 * walked.tlbs.entries + 1);
    let latest = USER + 4096 * 99_999;
    assert_eq!(walked.walks(&[latest - 4096, latest]), 1); // the fetch
    walked.tlbs.flush(Flush::Local);
    assert_eq!(walked.walks(&[latest - 4096, latest]), 2);
}
