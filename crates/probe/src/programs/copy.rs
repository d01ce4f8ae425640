//! Small copies by plain instructions.

use crate::arena::Arena;
use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::Rng;

pub const PROGRAMS: &[Program] = &[
    fit("copy-words-256", "256 B in words", words::<256, 8_000>),
    fit("copy-struct-40", "structures of 40 B out of an array of 64 kB", structures::<15_000>),
    held_out("copy-bytes-32", "32 B in bytes", bytes::<32, 4_000>),
    held_out("copy-backwards-512", "512 B in words from the end, overlapping", backwards::<3_000>),
    held_out("copy-unaligned-120", "120 B in words, from odd addresses", unaligned::<15_000>),
    held_out("copy-gather", "words gathered from random places of 256 kB", gather::<40_000>),
];

fn words<const BYTES: usize, const TIMES: usize>() -> Body {
    let (mut origin, mut destination) = (Arena::new(BYTES), Arena::new(BYTES));
    Box::new(move || {
        for _ in 0..TIMES {
            for (destination, origin) in destination.words().iter_mut().zip(origin.words().iter()) {
                *destination = opaque(*origin);
            }
        }
        destination.words()[0]
    })
}

fn structures<const TIMES: usize>() -> Body {
    let mut array = Arena::new(64 << 10);
    let mut copy = [0_u64; 5];
    let mut rng = Rng::new(151);
    Box::new(move || {
        let words = array.words();
        for _ in 0..TIMES {
            let place = rng.below(8192 / 5) as usize * 5;
            for (destination, origin) in copy.iter_mut().zip(&words[place..place + 5]) {
                *destination = opaque(*origin);
            }
            words[place] = opaque(copy[4]);
        }
        copy[0]
    })
}

fn bytes<const BYTES: usize, const TIMES: usize>() -> Body {
    let (mut origin, mut destination) = (Arena::new(BYTES), Arena::new(BYTES));
    Box::new(move || {
        for _ in 0..TIMES {
            for (destination, origin) in destination.bytes().iter_mut().zip(origin.bytes().iter()) {
                *destination = opaque((*origin).into()) as u8;
            }
        }
        destination.bytes()[0].into()
    })
}

fn backwards<const TIMES: usize>() -> Body {
    let mut arena = Arena::new(1024);
    Box::new(move || {
        let words = arena.words();
        for _ in 0..TIMES {
            for i in (0..64).rev() {
                words[i + 1] = opaque(words[i]);
            }
        }
        words[64]
    })
}

fn unaligned<const TIMES: usize>() -> Body {
    let (origin, destination) = (Arena::new(4096), Arena::new(4096));
    Box::new(move || {
        for i in 0..TIMES {
            let source = (origin.address() + 3 + ((i * 17) & 2047)) as *const u64;
            let target = (destination.address() + 5 + ((i * 13) & 2047)) as *mut u64;
            for k in 0..15 {
                // SAFETY: within both arenas.
                unsafe { target.add(k).write_unaligned(opaque(source.add(k).read_unaligned())) };
            }
        }
        0
    })
}

fn gather<const TIMES: usize>() -> Body {
    let mut origin = Arena::new(256 << 10);
    let mut destination = Arena::new(64 << 10);
    let mut rng = Rng::new(152);
    Box::new(move || {
        let (origin, destination) = (origin.words(), destination.words());
        for i in 0..TIMES {
            destination[i & 8191] = opaque(origin[rng.below(32768) as usize]);
        }
        destination[0]
    })
}
