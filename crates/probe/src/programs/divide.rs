//! Integer division; divisors that the compiler doesn't know.

use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::Rng;

pub const PROGRAMS: &[Program] = &[
    fit("divide-chain", "each quotient the divisor of the next", chain::<25_000>),
    fit("divide-small", "32-bit divisions apart", small::<40_000>),
    fit("divide-large", "64-bit divisions of random words", large::<25_000>),
    held_out("divide-gcd", "greatest common divisors of random numbers", gcd::<1_200>),
    held_out("divide-decimal", "decimal digits of random numbers", decimal::<1_500>),
    held_out("divide-power", "powers modulo a prime", power::<1_000>),
    held_out("divide-buckets", "random words to one of 1000 buckets", buckets::<25_000>),
];

fn chain<const TIMES: u64>() -> Body {
    Box::new(|| (0..TIMES).fold(1, |x, i| opaque((u64::MAX >> 4) / opaque((x & 0xffff) + i + 1))))
}

fn small<const TIMES: u64>() -> Body {
    Box::new(|| (0..TIMES).fold(0, |sum, i| sum ^ u64::from(opaque(1 << 31 | i) as u32 / opaque(7 + (i & 15)) as u32)))
}

fn large<const TIMES: u64>() -> Body {
    let mut rng = Rng::new(121);
    Box::new(move || (0..TIMES).fold(0, |sum, _| sum ^ ((rng.next() | 1 << 63) / opaque(1_000_003))))
}

fn gcd<const TIMES: u64>() -> Body {
    let mut rng = Rng::new(122);
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let (mut a, mut b) = (rng.next() >> 34, rng.next() >> 34);
            while b != 0 {
                (a, b) = (b, opaque(a) % b);
            }
            sum += a;
        }
        sum
    })
}

fn decimal<const TIMES: u64>() -> Body {
    let mut rng = Rng::new(123);
    let mut digits = [0_u8; 24];
    Box::new(move || {
        for _ in 0..TIMES {
            let (mut left, mut place) = (rng.next() >> 16, 0);
            let base = opaque(10);
            while left != 0 {
                digits[place] = b'0' + (left % base) as u8;
                left /= base;
                place += 1;
            }
        }
        digits[0].into()
    })
}

fn power<const TIMES: u64>() -> Body {
    Box::new(|| {
        let prime = opaque(2_147_483_647);
        let mut sum = 0;
        for base in 2..2 + TIMES {
            let (mut result, mut square, mut exponent) = (1, base, 0xb00b_u64);
            while exponent != 0 {
                if exponent & 1 == 1 {
                    result = result * square % prime;
                }
                square = square * square % prime;
                exponent = opaque(exponent >> 1);
            }
            sum ^= result;
        }
        sum
    })
}

fn buckets<const TIMES: u64>() -> Body {
    let mut counts = [0_u64; 1000];
    let mut rng = Rng::new(124);
    Box::new(move || {
        let buckets = opaque(1000);
        for _ in 0..TIMES {
            counts[((rng.next() >> 40) % buckets) as usize] += 1;
        }
        counts[0]
    })
}
