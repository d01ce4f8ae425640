//! Integer multiplication.

use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};

pub const PROGRAMS: &[Program] = &[
    fit("multiply-chain", "each product a factor of the next", chain::<120_000>),
    fit("multiply-four", "four products apart", four::<80_000>),
    held_out("multiply-horner", "polynomials of degree 12 by Horner's rule", horner::<8_000>),
    held_out("multiply-high", "a chain of 128-bit products' upper halves", high::<60_000>),
    held_out("multiply-inner", "inner product of two vectors of 1000 words", inner::<60>),
    held_out("multiply-two-chains", "two linear congruential generators", two_chains::<80_000>),
];

fn chain<const TIMES: u64>() -> Body {
    Box::new(|| (0..TIMES).fold(3, |x: u64, _| opaque(x.wrapping_mul(opaque(0x9e37_79b9_7f4a_7c15)))))
}

fn four<const TIMES: u64>() -> Body {
    Box::new(|| {
        let mut sums = [0_u64; 4];
        for i in 0..TIMES {
            let factor = opaque(i);
            for (k, sum) in sums.iter_mut().enumerate() {
                *sum = opaque(*sum ^ factor.wrapping_mul(opaque(factor + k as u64)));
            }
        }
        sums[0] ^ sums[1] ^ sums[2] ^ sums[3]
    })
}

fn horner<const TIMES: u64>() -> Body {
    let coefficients: Vec<u64> = (1..14).map(|i| i * 7919).collect();
    Box::new(move || {
        (0..TIMES).fold(0, |sum, x| {
            sum ^ coefficients.iter().fold(0_u64, |value, c| opaque(value.wrapping_mul(x).wrapping_add(*c)))
        })
    })
}

fn high<const TIMES: u64>() -> Body {
    Box::new(|| {
        (0..TIMES).fold(u64::MAX, |x, i| {
            let product = u128::from(x) * u128::from(opaque(0xd134_2543_de82_ef95));
            opaque((product >> 64) as u64 ^ product as u64 ^ i)
        })
    })
}

fn inner<const TIMES: u64>() -> Body {
    let (a, b): (Vec<u64>, Vec<u64>) = (0..1000).map(|i| (i * 3, i * 5 + 1)).unzip();
    Box::new(move || {
        let products = |sum, (a, b): (&u64, &u64)| opaque(a.wrapping_mul(*b).wrapping_add(sum));
        (0..TIMES).fold(0, |sum, _| a.iter().zip(&b).fold(sum, products))
    })
}

fn two_chains<const TIMES: u64>() -> Body {
    Box::new(|| {
        let (mut a, mut b) = (1_u64, 2_u64);
        for _ in 0..TIMES {
            a = opaque(a.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
            b = opaque(b.wrapping_mul(0x1405_7b7e_f767_814f).wrapping_add(3));
        }
        a ^ b
    })
}
