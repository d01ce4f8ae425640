//! Conditional branches: always alike, in patterns, at random.

use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::Rng;

pub const PROGRAMS: &[Program] = &[
    fit("branch-steady", "a branch that is taken once in 1024 times", pattern::<1023, 0, 200_000>),
    fit("branch-every-8", "a branch that is taken once in 8 times", pattern::<7, 3, 200_000>),
    fit("branch-random-half", "taken at random, 1 in 2", random::<32768, 40_000>),
    fit("branch-random-eighth", "taken at random, 1 in 8", random::<8192, 60_000>),
    fit("branch-inner-5", "an inner loop of 5", inner_loop::<30_000>),
    fit("branch-classify", "random numbers in four classes", classify::<25_000>),
    held_out("branch-random-fifth", "taken at random, 1 in 5, with work on both sides", both_sides::<40_000>),
    held_out("branch-correlated", "random, then another that follows from it", correlated::<30_000>),
    held_out("branch-collatz", "Collatz sequences", collatz::<600>),
    held_out("branch-trip-count", "an inner loop of 1 to 4 at random", trip_count::<25_000>),
    held_out("branch-period-24", "a word of 24 bits, again and again", period::<24, 100_000>),
    held_out("branch-max", "running maximum of random numbers: seldom a new one", maximum::<80_000>),
];

fn pattern<const MASK: u64, const WHEN: u64, const TIMES: u64>() -> Body {
    Box::new(|| {
        let (mut one, mut other) = (0, 0);
        for i in 0..TIMES {
            if opaque(i) & MASK == WHEN {
                one = opaque(one + 3);
            } else {
                other = opaque(other + 1);
            }
        }
        one ^ other
    })
}

fn random<const OF_65536: u64, const TIMES: u64>() -> Body {
    let mut rng = Rng::new(21);
    Box::new(move || {
        let (mut one, mut other) = (0, 0);
        for _ in 0..TIMES {
            if opaque(rng.next()) >> 48 < OF_65536 {
                one = opaque(one + 3);
            } else {
                other = opaque(other + 1);
            }
        }
        one ^ other
    })
}

fn inner_loop<const TIMES: u64>() -> Body {
    Box::new(|| {
        let mut sum = 0;
        for i in 0..TIMES {
            for j in 0..opaque(5) {
                sum = opaque(sum + (i ^ j));
            }
        }
        sum
    })
}

fn classify<const TIMES: u64>() -> Body {
    let mut rng = Rng::new(22);
    Box::new(move || {
        let mut counts = [0_u64; 4];
        for _ in 0..TIMES {
            let class = match opaque(rng.next() >> 56) {
                0..100 => opaque(0),
                100..120 => opaque(1),
                120..200 => opaque(2),
                _ => opaque(3),
            };
            counts[class as usize & 3] += 1;
        }
        counts[0] ^ counts[1] ^ counts[2]
    })
}

fn both_sides<const TIMES: u64>() -> Body {
    let mut rng = Rng::new(23);
    Box::new(move || {
        let mut state = 1_u64;
        for _ in 0..TIMES {
            let value = opaque(rng.next());
            if value % 256 < 51 {
                state = opaque(state.rotate_left(5) ^ value);
                state = opaque(state.wrapping_add(value >> 3));
            } else {
                state = opaque((state >> 1) ^ (value & 0xff));
                state = opaque(state | 4);
                state = opaque(state.wrapping_sub(value));
            }
        }
        state
    })
}

fn correlated<const TIMES: u64>() -> Body {
    let mut rng = Rng::new(24);
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let value = opaque(rng.next());
            if value & 0x300 == 0x300 {
                sum = opaque(sum + 1);
            }
            let value = opaque(value);
            if value & 0x300 != 0x300 {
                sum = opaque(sum ^ 0x55);
            }
        }
        sum
    })
}

fn collatz<const NUMBERS: u64>() -> Body {
    let mut first = 1_000_003;
    Box::new(move || {
        let mut steps = 0;
        for number in first..first + NUMBERS {
            let mut n = number;
            while n != 1 {
                n = if opaque(n) & 1 == 0 { opaque(n >> 1) } else { opaque(3 * n + 1) };
                steps += 1;
            }
        }
        first += NUMBERS;
        steps
    })
}

fn trip_count<const TIMES: u64>() -> Body {
    let mut rng = Rng::new(25);
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            for _ in 0..=opaque(rng.next() >> 62) {
                sum = opaque(sum + 1);
            }
        }
        sum
    })
}

fn period<const BITS: u32, const TIMES: u64>() -> Body {
    Box::new(|| {
        let (mut word, mut sum) = (0b1011_0010_1110_0001_0111_0100_u64, 0);
        for _ in 0..TIMES {
            if opaque(word) & 1 == 1 {
                sum = opaque(sum + 5);
                word = (word >> 1) | (1 << (BITS - 1));
            } else {
                word = opaque(word >> 1);
            }
        }
        sum
    })
}

fn maximum<const TIMES: u64>() -> Body {
    let mut rng = Rng::new(26);
    Box::new(move || {
        let mut most = 0;
        for _ in 0..TIMES {
            let value = opaque(rng.next());
            if value > most {
                most = opaque(value);
            }
        }
        most
    })
}
