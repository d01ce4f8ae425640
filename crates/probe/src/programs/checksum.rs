//! Checksums, and hashes of streams.

use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::Rng;

pub const PROGRAMS: &[Program] = &[
    fit("checksum-crc32", "CRC-32 by a table, a byte a time, 16 kB", || checksum_body::<16384, 8>(crc32)),
    fit("checksum-internet", "the Internet's checksum of 1500 bytes in words", || checksum_body::<1504, 500>(internet)),
    fit("checksum-fnv", "FNV-1a of 16 kB", || checksum_body::<16384, 8>(fnv)),
    held_out("checksum-adler", "Adler-32 of 16 kB", || checksum_body::<16384, 10>(adler)),
    held_out("checksum-crc-bits", "CRC-16 bit by bit, 1 kB", || checksum_body::<1024, 8>(crc_bits)),
    held_out("checksum-fletcher", "Fletcher-64 of 40 kB", || checksum_body::<40960, 20>(fletcher)),
    held_out("checksum-siphash", "SipHash-1-3 of 8 kB", || checksum_body::<8192, 30>(siphash)),
    held_out("checksum-crc32-slice", "CRC-32 by four tables, four bytes a time, 16 kB", || {
        checksum_body::<16384, 16>(crc32_by_four)
    }),
];

struct Tables([[u32; 256]; 4]);

fn tables() -> Tables {
    let mut tables = [[0; 256]; 4];
    for (byte, entry) in tables[0].iter_mut().enumerate() {
        *entry = (0..8).fold(byte as u32, |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()));
    }
    for byte in 0..256 {
        for slice in 1..4 {
            let previous: u32 = tables[slice - 1][byte];
            tables[slice][byte] = (previous >> 8) ^ tables[0][previous as usize & 255];
        }
    }
    Tables(tables)
}

fn checksum_body<const BYTES: usize, const TIMES: usize>(checksum: fn(&[u64], &[u8], &Tables) -> u64) -> Body {
    let (mut rng, tables) = (Rng::new(101), tables());
    let words: Vec<u64> = (0..BYTES / 8).map(|_| rng.next()).collect();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Box::new(move || (0..TIMES).fold(0, |sum, _| sum ^ checksum(&words, &bytes, &tables)))
}

fn crc32(_: &[u64], bytes: &[u8], Tables(tables): &Tables) -> u64 {
    let step = |crc: u64, byte: &u8| opaque((crc >> 8) ^ u64::from(tables[0][(crc as u8 ^ byte) as usize]));
    !bytes.iter().fold(0xffff_ffff, step) & 0xffff_ffff
}

fn crc32_by_four(_: &[u64], bytes: &[u8], Tables(tables): &Tables) -> u64 {
    let step = |crc: u64, four: &[u8]| {
        let word = crc as u32 ^ u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        let part = |slice: usize, shift: u32| tables[slice][(word >> shift) as usize & 255];
        opaque(u64::from(part(3, 0) ^ part(2, 8) ^ part(1, 16) ^ part(0, 24)))
    };
    !bytes.chunks_exact(4).fold(0xffff_ffff, step) & 0xffff_ffff
}

fn internet(words: &[u64], _: &[u8], _: &Tables) -> u64 {
    let sum = words.iter().fold(0_u64, |sum, word| {
        let (sum, carry) = sum.overflowing_add(*word);
        opaque(sum + u64::from(carry))
    });
    let halves = (sum >> 32) + (sum & 0xffff_ffff);
    (halves >> 16) + (halves & 0xffff)
}

fn fnv(_: &[u64], bytes: &[u8], _: &Tables) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| opaque((hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)))
}

fn adler(_: &[u64], bytes: &[u8], _: &Tables) -> u64 {
    let (mut a, mut b) = (1, 0);
    for part in bytes.chunks(5552) {
        for byte in part {
            a = opaque(a + u64::from(*byte));
            b = opaque(b + a);
        }
        (a, b) = (opaque(a) % 65521, opaque(b) % 65521);
    }
    b << 16 | a
}

fn crc_bits(_: &[u64], bytes: &[u8], _: &Tables) -> u64 {
    let mut crc = 0xffff;
    for byte in bytes {
        crc ^= u64::from(*byte) << 8;
        for _ in 0..8 {
            crc = if opaque(crc) & 0x8000 != 0 { opaque(crc << 1) ^ 0x1021 } else { opaque(crc << 1) };
        }
    }
    crc & 0xffff
}

fn fletcher(words: &[u64], _: &[u8], _: &Tables) -> u64 {
    let (mut a, mut b) = (0_u64, 0_u64);
    for word in words {
        a = opaque(a.wrapping_add(word & 0xffff_ffff));
        b = opaque(b.wrapping_add(a));
        a = opaque(a.wrapping_add(word >> 32));
        b = opaque(b.wrapping_add(a));
    }
    b << 32 ^ a
}

fn siphash(words: &[u64], _: &[u8], _: &Tables) -> u64 {
    let mut state = [0x736f_6d65_7073_6575_u64, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573];
    for word in words {
        state[3] ^= word;
        sip_round(&mut state);
        state[0] = opaque(state[0] ^ word);
    }
    (0..3).for_each(|_| sip_round(&mut state));
    state.iter().fold(0, |hash, word| hash ^ word)
}

#[inline(always)]
fn sip_round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = opaque(v[1].rotate_left(13) ^ v[0]);
    v[3] = opaque(v[3].rotate_left(16) ^ v[2]);
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = opaque(v[1].rotate_left(17) ^ v[2]);
    v[3] = opaque(v[3].rotate_left(21) ^ v[0]);
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_books() {
        let digits = b"123456789";
        assert_eq!(crc32(&[], digits, &tables()), 0xcbf4_3926);
        assert_eq!(crc_bits(&[], digits, &tables()), 0x29b1);
        assert_eq!(adler(&[], b"Wikipedia", &tables()), 0x11e6_0398);
        assert_eq!(fnv(&[], b"a", &tables()), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(crc32_by_four(&[], b"12345678", &tables()), crc32(&[], b"12345678", &tables()));
    }
}
