//! Strings.

use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::Rng;

pub const PROGRAMS: &[Program] = &[
    fit("string-length", "length of names of 1 to 255 bytes", length::<1_500>),
    fit("string-compare", "comparison of names with a common start", compare::<4_000>),
    held_out("string-find-byte", "the first slash in 4 kB", find_byte::<60>),
    held_out("string-length-words", "length, a word at a time", length_by_words::<6_000>),
    held_out("string-tokens", "words of a text counted", tokens::<16384, 6>).slow_to_warm(),
    held_out("string-upper", "copy of a text in upper case", upper::<16384, 10>),
    held_out("string-number", "decimal numbers parsed", numbers::<80_000>).slow_to_warm(),
];

/// Return letters, with a space after each word of 1 to 9.
fn text(length: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut text = Vec::with_capacity(length);
    while text.len() < length {
        text.extend((0..=rng.below(9)).map(|_| b'a' + rng.below(26) as u8));
        text.push(b' ');
    }
    text.truncate(length);
    text
}

fn length<const TIMES: usize>() -> Body {
    let name = vec![b'x'; 256];
    let mut rng = Rng::new(91);
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let mut end = 1 + rng.below(255);
            // Somewhere in the name, so that the rest of it is the string.
            while name.get(end as usize).is_some() {
                end = opaque(end + 1);
            }
            sum += end;
        }
        sum
    })
}

fn compare<const TIMES: usize>() -> Body {
    let mut rng = Rng::new(92);
    let names: Vec<Vec<u8>> = (0..64)
        .map(|_| {
            let common = 8 + rng.below(24) as usize;
            let mut name = vec![b'n'; 48];
            name[common] = rng.below(250) as u8;
            name
        })
        .collect();
    Box::new(move || {
        let mut greater = 0;
        for _ in 0..TIMES {
            let (one, other) = (&names[rng.below(64) as usize], &names[rng.below(64) as usize]);
            let mut index = 0;
            while index < 47 && opaque(one[index].into()) == u64::from(other[index]) {
                index += 1;
            }
            greater += u64::from(one[index] > other[index]);
        }
        greater
    })
}

fn find_byte<const TIMES: usize>() -> Body {
    let mut path = vec![b'p'; 4096];
    let mut rng = Rng::new(93);
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let place = 2048 + rng.below(2048) as usize;
            path[place] = b'/';
            sum += path.iter().position(|byte| opaque((*byte).into()) == b'/'.into()).unwrap_or(0) as u64;
            path[place] = b'p';
        }
        sum
    })
}

fn length_by_words<const TIMES: usize>() -> Body {
    let mut words = vec![0x6161_6161_6161_6161_u64; 64];
    let mut rng = Rng::new(94);
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let end = 8 + rng.below(56) as usize;
            words[end] = 0x0061_6161;
            let mut index = 0;
            loop {
                let word = opaque(words[index]);
                let zeros = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
                if zeros != 0 {
                    sum += 8 * index as u64 + u64::from(zeros.trailing_zeros() / 8);
                    break;
                }
                index += 1;
            }
            words[end] = 0x6161_6161_6161_6161;
        }
        sum
    })
}

fn tokens<const BYTES: usize, const TIMES: usize>() -> Body {
    let text = text(BYTES, 95);
    Box::new(move || {
        let mut words = 0;
        for _ in 0..TIMES {
            let mut inside = false;
            for byte in &text {
                if opaque((*byte).into()) == u64::from(b' ') {
                    inside = false;
                } else if !inside {
                    inside = true;
                    words = opaque(words + 1);
                }
            }
        }
        words
    })
}

fn upper<const BYTES: usize, const TIMES: usize>() -> Body {
    let text = text(BYTES, 96);
    let mut copy = vec![0; BYTES];
    Box::new(move || {
        for _ in 0..TIMES {
            for (source, target) in text.iter().zip(&mut copy) {
                let byte = opaque((*source).into()) as u8;
                *target = byte & !(u8::from(byte.is_ascii_lowercase()) << 5);
            }
        }
        copy[0].into()
    })
}

fn numbers<const TIMES: usize>() -> Body {
    let mut rng = Rng::new(97);
    let text: Vec<u8> =
        (0..500).flat_map(|_| format!("{} ", rng.next() >> (20 + rng.below(40))).into_bytes()).collect();
    Box::new(move || {
        let (mut sum, mut index) = (0_u64, 0);
        for _ in 0..TIMES / 10 {
            let mut value = 0_u64;
            while text[index] != b' ' {
                value = opaque(value.wrapping_mul(10).wrapping_add(u64::from(text[index] - b'0')));
                index += 1;
            }
            index = if index + 1 == text.len() { 0 } else { index + 1 };
            sum ^= value;
        }
        sum
    })
}
