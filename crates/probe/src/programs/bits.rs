//! Bits.

use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::Rng;

pub const PROGRAMS: &[Program] = &[
    fit("bits-kernighan", "bits of random words counted one by one", kernighan::<4_000>),
    fit("bits-xorshift", "xorshift, each number from the last", xorshift::<100_000>),
    fit("bits-independent", "four words shifted and masked apart", independent::<60_000>),
    held_out("bits-swar", "bits counted by halves", swar::<60_000>),
    held_out("bits-reverse", "bits of words reversed", reverse::<40_000>),
    held_out("bits-scan", "set bits of a bitmap of 4 kB, by words", scan::<20>).slow_to_warm(),
    held_out("bits-morton", "two numbers interleaved", morton::<40_000>),
    held_out("bits-lfsr", "a shift register with feedback, bit by bit", lfsr::<100_000>),
];

fn kernighan<const TIMES: u64>() -> Body {
    let mut rng = Rng::new(111);
    Box::new(move || {
        let mut count = 0;
        for _ in 0..TIMES {
            let mut word = rng.next();
            while word != 0 {
                word = opaque(word & (word - 1));
                count += 1;
            }
        }
        count
    })
}

fn xorshift<const TIMES: u64>() -> Body {
    let mut rng = Rng::new(112);
    Box::new(move || (0..TIMES).fold(0, |_, _| opaque(rng.next())))
}

fn independent<const TIMES: u64>() -> Body {
    Box::new(|| {
        let mut w = [1_u64, 2, 3, 4];
        for i in 0..TIMES {
            w[0] = opaque((w[0] << 3) ^ i);
            w[1] = opaque((w[1] >> 1) + i);
            w[2] = opaque((w[2] & 0xffff) | i);
            w[3] = opaque((w[3] ^ 0xff) + i);
        }
        w[0] ^ w[1] ^ w[2] ^ w[3]
    })
}

fn swar<const TIMES: u64>() -> Body {
    Box::new(|| {
        let mut sum = 0;
        for i in 0..TIMES {
            let w = opaque(i << 20 ^ i);
            let w = w - (w >> 1 & 0x5555_5555_5555_5555);
            let w = opaque((w & 0x3333_3333_3333_3333) + (w >> 2 & 0x3333_3333_3333_3333));
            let w = opaque((w + (w >> 4)) & 0x0f0f_0f0f_0f0f_0f0f);
            let w = opaque(w + (w >> 8));
            let w = opaque(w + (w >> 16));
            sum = opaque(sum + ((w + (w >> 32)) & 0x7f));
        }
        sum
    })
}

fn reverse<const TIMES: u64>() -> Body {
    Box::new(|| {
        let mut w = 0x1234_5678_9abc_def0_u64;
        for i in 0..TIMES {
            w = opaque((w >> 1 & 0x5555_5555_5555_5555) | (w & 0x5555_5555_5555_5555) << 1);
            w = opaque((w >> 2 & 0x3333_3333_3333_3333) | (w & 0x3333_3333_3333_3333) << 2);
            w = opaque((w >> 4 & 0x0f0f_0f0f_0f0f_0f0f) | (w & 0x0f0f_0f0f_0f0f_0f0f) << 4);
            w = opaque(w.swap_bytes()) ^ i;
        }
        w
    })
}

fn scan<const TIMES: u64>() -> Body {
    let mut rng = Rng::new(113);
    let bitmap: Vec<u64> = (0..512).map(|_| rng.next() & rng.next() & rng.next()).collect();
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            for (index, word) in bitmap.iter().enumerate() {
                let mut left = opaque(*word);
                while left != 0 {
                    sum += 64 * index as u64 + u64::from(left.trailing_zeros());
                    left &= opaque(left - 1);
                }
            }
        }
        sum
    })
}

fn morton<const TIMES: u64>() -> Body {
    #[inline(always)]
    fn spread(w: u64) -> u64 {
        let w = opaque((w | w << 8) & 0x00ff_00ff);
        let w = opaque((w | w << 4) & 0x0f0f_0f0f);
        let w = opaque((w | w << 2) & 0x3333_3333);
        opaque((w | w << 1) & 0x5555_5555)
    }
    Box::new(|| (0..TIMES).fold(0, |sum, i| sum ^ spread(i & 0xffff) ^ spread(i >> 3 & 0xffff) << 1))
}

fn lfsr<const TIMES: u64>() -> Body {
    let mut state = 0xace1_u64;
    Box::new(move || {
        for _ in 0..TIMES {
            state = (state >> 1) ^ (opaque(state & 1).wrapping_neg() & 0xb400);
        }
        state
    })
}
