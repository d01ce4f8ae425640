//! One access in each of many pages, in random order: what translation costs.

use crate::arena::Arena;
use crate::opaque::{opaque, opaque_size};
use crate::program::{Body, Program, fit, held_out};
use crate::rng::permutation;

pub const PROGRAMS: &[Program] = &[
    fit("tlb-48", "48 pages, apart", apart::<48, 60_000>),
    fit("tlb-400", "400 pages, apart", apart::<400, 60_000>),
    fit("tlb-2000", "2000 pages, apart", apart::<2000, 50_000>),
    fit("tlb-12000", "12000 pages, apart", apart::<12_000, 12_000>),
    fit("tlb-chain-1000", "1000 pages, each page says the next", chain::<1000, 30_000>),
    held_out("tlb-write-150", "a word incremented in each of 150 pages", write_pages::<150, 20_000>),
    held_out("tlb-chain-300", "300 pages, each page says the next", chain::<300, 40_000>),
    held_out("tlb-chain-6000", "6000 pages, each page says the next", chain::<6000, 12_000>),
    held_out("tlb-write-5000", "a word incremented in each of 5000 pages", write_pages::<5000, 10_000>),
];

/// Return where in its page the word is: another line in each, so that caches are used evenly.
fn place(page: usize) -> usize {
    page * 512 + ((page * 8) & 511)
}

fn apart<const PAGES: usize, const TIMES: usize>() -> Body {
    let mut arena = Arena::new(PAGES * 4096);
    let order: Vec<u32> = permutation(PAGES, 171).into_iter().map(|page| place(page) as u32).collect();
    Box::new(move || {
        let words = arena.words();
        let (mut sum, mut next) = (0, 0);
        for _ in 0..TIMES {
            sum = opaque(sum + words[order[next] as usize]);
            next = if next + 1 == PAGES { 0 } else { next + 1 };
        }
        sum
    })
}

fn write_pages<const PAGES: usize, const TIMES: usize>() -> Body {
    let mut arena = Arena::new(PAGES * 4096);
    let mut page = 0;
    Box::new(move || {
        let words = arena.words();
        for _ in 0..TIMES {
            page = (page + 61) % opaque_size(PAGES);
            words[place(page)] += opaque(1);
        }
        words[0]
    })
}

fn chain<const PAGES: usize, const TIMES: usize>() -> Body {
    let mut arena = Arena::new(PAGES * 4096);
    let order = permutation(PAGES, 172);
    for (page, next) in order.iter().zip(order.iter().cycle().skip(1)) {
        arena.words()[place(*page)] = place(*next) as u64;
    }
    let mut index = place(order[0]);
    Box::new(move || {
        let words = arena.words();
        for _ in 0..TIMES {
            index = opaque(words[index]) as usize;
        }
        index as u64
    })
}
