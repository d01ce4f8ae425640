//! Searching arrays.

use crate::arena::Arena;
use crate::opaque::{opaque, opaque_size};
use crate::program::{Body, Program, fit, held_out};
use crate::rng::Rng;

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

pub const PROGRAMS: &[Program] = &[
    fit("search-binary-l1", "binary search in 16 kB", binary::<{ 16 * KB }, 5_000>),
    fit("search-binary-llc", "binary search in 3 MB", binary::<{ 3 * MB }, 2_000>).slow_to_warm(),
    fit("search-linear", "linear search in 64 words", linear::<64, 6_000>),
    held_out("search-branchless", "binary search by conditional moves in 2 MB", branchless::<{ 2 * MB }, 4_000>)
        .slow_to_warm(),
    held_out("search-eytzinger", "search in breadth-first order in 256 kB", eytzinger::<{ 256 * KB }, 4_000>)
        .slow_to_warm(),
    held_out("search-sentinel", "linear search in 500 words with a sentinel", sentinel::<500, 1_500>),
    held_out(
        "search-interpolation",
        "interpolation search in 512 kB of random words",
        interpolation::<{ 512 * KB }, 3_000>,
    )
    .slow_to_warm(),
];

fn sorted_arena<const BYTES: usize>() -> Arena {
    let mut arena = Arena::new(BYTES);
    arena.words().iter_mut().enumerate().for_each(|(i, word)| *word = 2 * i as u64);
    arena
}

fn binary<const BYTES: usize, const TIMES: usize>() -> Body {
    let (mut arena, mut rng) = (sorted_arena::<BYTES>(), Rng::new(61));
    Box::new(move || {
        let words = arena.words();
        let mut sum = 0;
        for _ in 0..TIMES {
            let key = rng.below(words.len() as u64 * 2);
            let (mut low, mut high) = (0, words.len());
            while low < high {
                let middle = (low + high) / 2;
                // Opaque on both sides: a branch, not a conditional move.
                if words[middle] < key {
                    low = opaque_size(middle + 1);
                } else {
                    high = opaque_size(middle);
                }
            }
            sum += low as u64;
        }
        sum
    })
}

fn linear<const COUNT: usize, const TIMES: usize>() -> Body {
    let words: Vec<u64> = (0..COUNT as u64).collect();
    let mut rng = Rng::new(62);
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let key = rng.below(COUNT as u64);
            sum += words.iter().position(|word| opaque(*word) == key).unwrap_or(0) as u64;
        }
        sum
    })
}

fn branchless<const BYTES: usize, const TIMES: usize>() -> Body {
    let (mut arena, mut rng) = (sorted_arena::<BYTES>(), Rng::new(63));
    Box::new(move || {
        let words = arena.words();
        let mut sum = 0;
        for _ in 0..TIMES {
            let key = rng.below(words.len() as u64 * 2);
            let (mut base, mut left) = (0_usize, words.len());
            while left > 1 {
                let half = left / 2;
                // A mask instead of a branch, whatever the compiler thinks.
                let mask = opaque(u64::from(words[base + half] <= key)).wrapping_neg() as usize;
                base += half & mask;
                left -= half;
            }
            sum += base as u64;
        }
        sum
    })
}

fn eytzinger<const BYTES: usize, const TIMES: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    lay_out(arena.words(), 1, &mut 0);
    let mut rng = Rng::new(64);
    Box::new(move || {
        let words = arena.words();
        let mut sum = 0;
        for _ in 0..TIMES {
            let key = rng.below(words.len() as u64);
            let mut place = 1;
            while place < words.len() {
                place = 2 * place + opaque(u64::from(words[place] < key)) as usize;
            }
            sum += place as u64;
        }
        sum
    })
}

/// Lay out the sorted numbers from `next` on, so that the children of i are at 2 i and 2 i + 1.
fn lay_out(words: &mut [u64], place: usize, next: &mut u64) {
    if place < words.len() {
        lay_out(words, 2 * place, next);
        words[place] = *next;
        *next += 1;
        lay_out(words, 2 * place + 1, next);
    }
}

fn sentinel<const COUNT: usize, const TIMES: usize>() -> Body {
    let mut words: Vec<u64> = (0..=COUNT as u64).collect();
    let mut rng = Rng::new(65);
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let key = rng.below(2 * COUNT as u64);
            words[COUNT] = key;
            let mut place = 0;
            while words[place] != key {
                place = opaque_size(place + 1);
            }
            sum += place as u64;
        }
        sum
    })
}

fn interpolation<const BYTES: usize, const TIMES: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    let mut rng = Rng::new(66);
    arena.words().iter_mut().for_each(|word| *word = rng.next() >> 20);
    arena.words().sort_unstable();
    Box::new(move || {
        let words = arena.words();
        let mut sum = 0;
        for _ in 0..TIMES {
            let key = rng.next() >> 20;
            let (mut low, mut high) = (0, words.len() - 1);
            while low < high && words[low] < key && key <= words[high] {
                let part = u128::from(key - words[low]) * (high - low) as u128;
                // At most 2^17 times 2^44.
                let middle = low + opaque(part as u64) as usize / (words[high] - words[low]) as usize;
                if words[middle] < key {
                    low = middle + 1;
                } else {
                    high = opaque_size(middle);
                }
            }
            sum += low as u64;
        }
        sum
    })
}
