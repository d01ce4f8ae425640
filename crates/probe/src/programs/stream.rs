//! Streaming: reading, writing and copying memory in order.

use crate::arena::Arena;
use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

pub const PROGRAMS: &[Program] = &[
    fit("read-l1", "read 16 kB in words", read::<{ 16 * KB }, { MB }>),
    fit("read-l2", "read 512 kB in words", read::<{ 512 * KB }, { 2 * MB }>),
    fit("read-llc", "read 3 MB in words", read::<{ 3 * MB }, { 3 * MB }>),
    fit("read-mem", "read 128 MB in words, 4 MB a time", read::<{ 128 * MB }, { 4 * MB }>),
    fit("write-l1", "write 16 kB in words", write::<{ 16 * KB }, { MB }>),
    fit("write-l2", "write 256 kB in words", write::<{ 256 * KB }, { 2 * MB }>),
    fit("write-mem", "write 128 MB in words, 2 MB a time", write::<{ 128 * MB }, { 2 * MB }>),
    fit("copy-l1", "copy 8 kB in words", copy::<{ 8 * KB }, { MB }>),
    fit("copy-l2", "copy 256 kB in words", copy::<{ 256 * KB }, { MB }>),
    fit("copy-mem", "copy 64 MB in words, 2 MB a time", copy::<{ 64 * MB }, { 2 * MB }>),
    held_out("sum-bytes", "add up 24 kB in bytes", sum_bytes::<{ 24 * KB }, { 256 * KB }>),
    held_out("update-llc", "increment the words of 3500 kB", update::<{ 3500 * KB }, { 3500 * KB }>),
    held_out("update-mem", "increment the words of 100 MB, 2 MB a time", update::<{ 100 * MB }, { 2 * MB }>),
    held_out("combine-l2", "c = a ^ b, three times 160 kB, five times", combine::<{ 160 * KB }, 5>),
    held_out("combine-mem", "c = a ^ b, three times 40 MB, 1 MB a time", combine::<{ 40 * MB }, 1>),
    held_out("read-back", "read 700 kB in words from the end", backwards::<{ 700 * KB }>),
    held_out("fill-halves", "write 3 MB in 4-byte words", fill_halves::<{ 3 * MB }>),
];

/// Return where the next part of `part` bytes begins, in words.
fn advance(place: &mut usize, part: usize, words: usize) -> usize {
    let start = *place;
    *place = if start + 2 * part / 8 > words { 0 } else { start + part / 8 };
    start
}

fn read<const BYTES: usize, const PART: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    let mut place = 0;
    Box::new(move || {
        let (words, rounds, part) = (arena.words(), PART.div_ceil(BYTES), PART.min(BYTES));
        let mut sum = 0_u64;
        for _ in 0..rounds {
            let start = advance(&mut place, part, BYTES / 8);
            for word in &words[start..start + part / 8] {
                sum = opaque(sum.wrapping_add(*word));
            }
        }
        sum
    })
}

fn write<const BYTES: usize, const PART: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    let mut place = 0;
    Box::new(move || {
        let (words, rounds, part) = (arena.words(), PART.div_ceil(BYTES), PART.min(BYTES));
        for round in 0..rounds {
            let start = advance(&mut place, part, BYTES / 8);
            for word in &mut words[start..start + part / 8] {
                *word = opaque(round as u64);
            }
        }
        words[0]
    })
}

fn copy<const BYTES: usize, const PART: usize>() -> Body {
    let (mut origin, mut destination) = (Arena::new(BYTES), Arena::new(BYTES));
    let mut place = 0;
    Box::new(move || {
        let (source, target) = (origin.words(), destination.words());
        let (rounds, part) = (PART.div_ceil(BYTES), PART.min(BYTES));
        for _ in 0..rounds {
            let start = advance(&mut place, part, BYTES / 8);
            let range = start..start + part / 8;
            for (target, source) in target[range.clone()].iter_mut().zip(&source[range]) {
                *target = opaque(*source);
            }
        }
        target[0]
    })
}

fn sum_bytes<const BYTES: usize, const PART: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    Box::new(move || {
        let mut sum = 0_u64;
        for _ in 0..PART / BYTES {
            for byte in arena.bytes().iter() {
                sum = opaque(sum + u64::from(*byte));
            }
        }
        sum
    })
}

fn update<const BYTES: usize, const PART: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    let mut place = 0;
    Box::new(move || {
        let words = arena.words();
        let start = advance(&mut place, PART, BYTES / 8);
        for word in &mut words[start..start + PART / 8] {
            *word = opaque(*word + 1);
        }
        words[0]
    })
}

fn combine<const BYTES: usize, const TIMES: usize>() -> Body {
    let (mut a, mut b, mut c) = (Arena::new(BYTES), Arena::new(BYTES), Arena::new(BYTES));
    let mut place = 0;
    Box::new(move || {
        let (a, b, c, part) = (a.words(), b.words(), c.words(), BYTES.min(MB));
        for _ in 0..TIMES {
            let start = advance(&mut place, part, BYTES / 8);
            for i in start..start + part / 8 {
                c[i] = opaque(a[i] ^ b[i]);
            }
        }
        c[0]
    })
}

fn backwards<const BYTES: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    Box::new(move || arena.words().iter().rev().fold(0, |sum, word| opaque(sum | *word)))
}

fn fill_halves<const BYTES: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    Box::new(move || {
        for word in arena.words() {
            let halves: *mut u32 = std::ptr::from_mut(word).cast();
            // SAFETY: a word is two halves.
            unsafe {
                *halves = opaque(3) as u32;
                *halves.add(1) = opaque(4) as u32;
            }
        }
        arena.words()[0]
    })
}
