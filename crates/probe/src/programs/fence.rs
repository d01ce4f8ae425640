//! Fences.

use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::Rng;
use std::arch::x86_64::{_mm_lfence, _mm_mfence, _mm_sfence};

pub const PROGRAMS: &[Program] = &[
    fit("fence-full", "mfence after each of many stores", after_store::<FULL, 1, 15_000>),
    fit("fence-load", "lfence after each of many stores", after_store::<LOAD, 1, 30_000>),
    fit("fence-store", "sfence after each of many stores", after_store::<STORE, 1, 60_000>),
    fit("fence-load-work", "lfence with a random number between", speculation::<0, 20_000>),
    held_out("fence-dekker", "store, mfence, load of another line", dekker::<12_000>),
    held_out("fence-speculation", "bounds check, lfence, load", speculation::<1, 20_000>),
    held_out("fence-store-8", "sfence after every eight stores", after_store::<STORE, 8, 25_000>),
    held_out("fence-full-8", "mfence after every eight stores", after_store::<FULL, 8, 8_000>),
];

const FULL: u8 = 0;
const LOAD: u8 = 1;
const STORE: u8 = 2;

fn after_store<const FENCE: u8, const STORES: usize, const TIMES: usize>() -> Body {
    let mut words = vec![0_u64; 512];
    Box::new(move || {
        for i in 0..TIMES {
            for k in 0..STORES {
                words[(i * STORES + k) & 511] = opaque(k as u64);
            }
            // SAFETY: every x86-64 processor has fences.
            unsafe {
                match FENCE {
                    FULL => _mm_mfence(),
                    LOAD => _mm_lfence(),
                    _ => _mm_sfence(),
                }
            }
        }
        words[0]
    })
}

fn dekker<const TIMES: u64>() -> Body {
    let mut flags = [0_u64; 16];
    Box::new(move || {
        let mut sum = 0;
        for i in 0..TIMES {
            flags[0] = opaque(i);
            // SAFETY: as above.
            unsafe { _mm_mfence() };
            sum = opaque(sum + opaque(flags[8]));
            flags[8] = opaque(0);
        }
        sum
    })
}

/// Check indices as kernels do to keep a processor from loading beyond an array's end on a guess.
fn speculation<const CHECK: u64, const TIMES: u64>() -> Body {
    let table: Vec<u64> = (0..1024).collect();
    let mut rng = Rng::new(141);
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let index = rng.next() >> 54;
            if CHECK == 0 || opaque(index) < 1000 {
                // SAFETY: as above.
                unsafe { _mm_lfence() };
                sum = opaque(sum ^ table[index as usize]);
            }
        }
        sum
    })
}
