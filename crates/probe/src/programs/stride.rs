//! Memory read at a constant stride.

use crate::arena::Arena;
use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

pub const PROGRAMS: &[Program] = &[
    fit("stride-64", "every 64 B of 3 MB", read::<{ 3 * MB }, 64>),
    fit("stride-256", "every 256 B of 3 MB", read::<{ 3 * MB }, 256>),
    fit("stride-512", "every 512 B of 512 kB", read::<{ 512 * KB }, 512>),
    fit("stride-4096", "every 4096 B of 16 MB", read::<{ 16 * MB }, 4096>),
    fit("stride-64-mem", "every 64 B of 128 MB, 2 MB a time", far::<{ 128 * MB }, 64>),
    fit("stride-1024-mem", "every 1024 B of 256 MB, 16 MB a time", far::<{ 256 * MB }, 1024>),
    held_out("stride-128", "every 128 B of 3 MB, words incremented", write::<{ 3 * MB }, 128>),
    held_out("stride-1088", "every 1088 B of 6 MB", read::<{ 6 * MB }, 1088>),
    held_out("stride-4160", "every 4160 B of 12 MB, words incremented", write::<{ 12 * MB }, 4160>),
    held_out("stride-320-mem", "every 320 B of 200 MB, 4 MB a time", far::<{ 200 * MB }, 320>),
    held_out("stride-2048", "every 2048 B of 48 kB: few sets", read::<{ 48 * KB }, 2048>),
];

const ACCESSES: usize = 60_000;

fn read<const BYTES: usize, const STRIDE: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    Box::new(move || {
        let words = arena.words();
        let (mut place, mut sum) = (0, 0_u64);
        for _ in 0..ACCESSES {
            sum = opaque(sum.wrapping_add(words[place]));
            place += STRIDE / 8;
            if place >= BYTES / 8 {
                place = 0;
            }
        }
        sum
    })
}

fn write<const BYTES: usize, const STRIDE: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    Box::new(move || {
        let words = arena.words();
        let mut place = BYTES / 8;
        for _ in 0..ACCESSES {
            place = if place < STRIDE / 8 { BYTES / 8 - 1 } else { place - STRIDE / 8 };
            words[place] = opaque(words[place] + 1);
        }
        words[0]
    })
}

/// Go on where it stopped, so that nothing is in any cache.
fn far<const BYTES: usize, const STRIDE: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    let mut place = 0;
    Box::new(move || {
        let words = arena.words();
        let mut sum = 0_u64;
        for _ in 0..ACCESSES.min(16 * MB / STRIDE) {
            sum = opaque(sum.wrapping_add(words[place]));
            place += STRIDE / 8;
            if place >= BYTES / 8 {
                place = 0;
            }
        }
        sum
    })
}
