//! Hash tables.

use crate::arena::Arena;
use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::Rng;

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

pub const PROGRAMS: &[Program] = &[
    fit("hash-open-l1", "open addressing in 16 kB, half full", open_addressing::<{ 16 * KB }, 20_000>),
    fit("hash-open-llc", "open addressing in 2 MB, half full", open_addressing::<{ 2 * MB }, 12_000>).slow_to_warm(),
    fit("hash-open-mem", "open addressing in 128 MB, half full", open_addressing::<{ 128 * MB }, 6_000>),
    fit("hash-histogram", "counting random bytes", histogram::<{ 2 * KB }, 60_000>),
    held_out("hash-chained-l2", "chains of nodes in 512 kB", chained::<{ 16 * KB }, 12_000>).slow_to_warm(),
    held_out("hash-chained-mem", "chains of nodes in 64 MB", chained::<{ 2 * MB }, 6_000>),
    held_out("hash-strings", "FNV-1a of names of 8 to 23 bytes, looked up", strings::<5_000>),
    held_out("hash-histogram-l2", "counting in 512 kB of counters", histogram::<{ 512 * KB }, 50_000>).slow_to_warm(),
    held_out("hash-replace", "insert and remove, a table of 128 kB", replace::<15_000>),
];

#[inline(always)]
fn slot_of(key: u64, slots: usize) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize & (slots - 1)
}

fn insert(words: &mut [u64], key: u64) {
    let mut place = slot_of(key, words.len());
    while words[place] != 0 {
        place = (place + 1) & (words.len() - 1);
    }
    words[place] = key;
}

fn open_addressing<const BYTES: usize, const TIMES: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    let keys = (BYTES / 16) as u64;
    (1..=keys).for_each(|key| insert(arena.words(), key));
    let mut rng = Rng::new(41);
    Box::new(move || {
        let words = arena.words();
        let mut hits = 0;
        for _ in 0..TIMES {
            // Half of them aren't there.
            let key = 1 + rng.below(2 * keys);
            let mut place = slot_of(key, BYTES / 8);
            while words[place] != 0 {
                if words[place] == key {
                    hits = opaque(hits + 1);
                    break;
                }
                place = (place + 1) & (BYTES / 8 - 1);
            }
        }
        hits
    })
}

fn histogram<const BYTES: usize, const TIMES: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    let mut rng = Rng::new(42);
    Box::new(move || {
        let counters = arena.words();
        for _ in 0..TIMES {
            counters[rng.below(BYTES as u64 / 8) as usize] += opaque(1);
        }
        counters[0]
    })
}

struct Node {
    key: u64,
    value: u64,
    next: u32,
    _rest: u32,
}

fn chained<const NODES: usize, const TIMES: usize>() -> Body {
    let mut heads = vec![u32::MAX; NODES];
    let mut nodes = Vec::with_capacity(NODES);
    for key in 0..NODES as u64 {
        let head = &mut heads[slot_of(key, NODES)];
        nodes.push(Node { key, value: key ^ 5, next: *head, _rest: 0 });
        *head = key as u32;
    }
    let mut rng = Rng::new(43);
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let key = rng.below(NODES as u64);
            let mut place = heads[slot_of(key, NODES)];
            while let Some(node) = nodes.get(place as usize) {
                if node.key == key {
                    sum = opaque(sum ^ node.value);
                    break;
                }
                place = node.next;
            }
        }
        sum
    })
}

fn strings<const TIMES: usize>() -> Body {
    let mut rng = Rng::new(44);
    let name = |rng: &mut Rng| (0..8 + rng.below(16)).map(|_| b'a' + rng.below(26) as u8).collect::<Vec<_>>();
    let names: Vec<Vec<u8>> = (0..256).map(|_| name(&mut rng)).collect();
    let mut table = vec![0_u16; 512];
    let fnv = |name: &[u8]| {
        name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            opaque((hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
        })
    };
    for (index, name) in names.iter().enumerate() {
        table[fnv(name) as usize & 511] = index as u16;
    }
    Box::new(move || {
        (0..TIMES).fold(0, |sum, _| sum + u64::from(table[fnv(&names[rng.below(256) as usize]) as usize & 511]))
    })
}

fn replace<const TIMES: usize>() -> Body {
    const SLOTS: usize = 16 << 10;
    let mut arena = Arena::new(8 * SLOTS);
    let mut rng = Rng::new(45);
    Box::new(move || {
        let slots = arena.words();
        let mut replaced = 0;
        for _ in 0..TIMES {
            let key = rng.next() | 1;
            let place = slot_of(key, SLOTS);
            // Two places for each key; the second is the victim.
            let other = place ^ 1;
            if slots[place] == 0 {
                slots[place] = opaque(key);
            } else if slots[other] == 0 {
                slots[other] = opaque(slots[place]);
                slots[place] = key;
            } else {
                replaced += slots[other] & 1;
                slots[other] = 0;
            }
        }
        replaced
    })
}
