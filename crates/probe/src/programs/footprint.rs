//! More code than the caches and TLBs of instructions hold, as a kernel's is.

use crate::code::Functions;
use crate::opaque::{opaque, opaque_size};
use crate::program::{Body, Program, fit, held_out};
use crate::rng::{Rng, permutation};

pub const PROGRAMS: &[Program] = &[
    fit("code-16k", "128 functions of 100 B, in order", || in_order(128, 100, 128, 12_000)),
    fit("code-200k", "1600 functions of 100 B in a fixed random order", || shuffled(1600, 100, 128, 8_000)),
    fit("code-600k", "2400 functions of 200 B in a fixed random order", || shuffled(2400, 200, 256, 4_800)),
    fit("code-straight-100k", "100 functions of 1 kB, in order", || in_order(100, 1000, 1024, 2_000)),
    fit("code-pages", "300 functions, each in a page of its own", || shuffled(300, 100, 4096 + 64, 6_000)),
    held_out("code-96k", "400 functions of 230 B, any of them at random", || random(400, 230, 240, 6_000)),
    held_out("code-straight-500k", "250 functions of 2 kB, in order", || in_order(250, 2000, 2048, 500)),
    held_out("code-2m", "8000 functions of 150 B in a fixed random order", || shuffled(8000, 150, 256, 8_000)),
    held_out("code-pages-1000", "1000 functions, each in two pages of its own", || {
        shuffled(1000, 60, 8192 + 64, 5_000)
    }),
    held_out("code-24k", "48 functions of 500 B in a fixed random order", || shuffled(48, 500, 512, 3_000)),
];

fn in_order(count: usize, size: usize, spacing: usize, times: usize) -> Body {
    let functions = Functions::new(count, size, spacing);
    Box::new(move || {
        let (mut sum, mut next) = (0, 0);
        for _ in 0..times {
            sum = opaque(sum ^ functions.call(next));
            next = if next + 1 == functions.count { 0 } else { opaque_size(next + 1) };
        }
        sum
    })
}

fn shuffled(count: usize, size: usize, spacing: usize, times: usize) -> Body {
    let functions = Functions::new(count, size, spacing);
    let order = permutation(count, 181);
    let mut next = 0;
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..times {
            sum = opaque(sum ^ functions.call(order[next]));
            next = if next + 1 == order.len() { 0 } else { opaque_size(next + 1) };
        }
        sum
    })
}

fn random(count: usize, size: usize, spacing: usize, times: usize) -> Body {
    let functions = Functions::new(count, size, spacing);
    let mut rng = Rng::new(182);
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..times {
            sum = opaque(sum ^ functions.call(rng.below(functions.count as u64) as usize));
        }
        sum
    })
}
