//! Pointer chasing: each load's address is what the load before it found.

use crate::arena::Arena;
use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::permutation;

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

pub const PROGRAMS: &[Program] = &[
    fit("chase-l1", "16 kB, nodes of 64 B", chain::<{ 16 * KB }, 64, 200_000>),
    fit("chase-l2", "384 kB, nodes of 64 B", chain::<{ 384 * KB }, 64, 100_000>),
    fit("chase-llc", "3 MB, nodes of 64 B", chain::<{ 3 * MB }, 64, 49_152>),
    fit("chase-mem", "96 MB, nodes of 64 B", chain::<{ 96 * MB }, 64, 12_000>),
    fit("chase-two-l2", "two chains at once in 256 kB", two_chains::<{ 256 * KB }, 50_000>),
    fit("chase-two-mem", "two chains at once in 128 MB", two_chains::<{ 128 * MB }, 12_000>),
    held_out(
        "chase-payload-l2",
        "640 kB, nodes of 128 B, the payload is added up",
        payload::<{ 640 * KB }, 128, 60_000>,
    ),
    held_out(
        "chase-payload-mem",
        "72 MB, nodes of 192 B, the payload is added up",
        payload::<{ 72 * MB }, 192, 12_000>,
    ),
    held_out("chase-index-l1", "a cycle of 2-byte indices in 20 kB", indices::<{ 10 * KB }, 200_000>),
    held_out("chase-index-llc", "a cycle of 2-byte indices and a table of 3 MB", two_tables::<{ 3 * MB }, 60_000>),
];

/// Link words `stride` bytes apart to one cycle in random order: each holds the address of the next.
fn link(arena: &mut Arena, stride: usize, seed: u64) {
    let (start, step) = (arena.address(), stride / 8);
    let order = permutation(arena.bytes().len() / stride, seed);
    let words = arena.words();
    for (node, next) in order.iter().zip(order.iter().cycle().skip(1)) {
        words[node * step] = (start + next * stride) as u64;
        words[node * step + 1] = *node as u64;
    }
}

fn chain<const BYTES: usize, const STRIDE: usize, const STEPS: usize>() -> Body {
    let mut arena = Arena::new(BYTES);
    link(&mut arena, STRIDE, 11);
    let mut place = arena.address() as u64;
    Box::new(move || {
        let _alive = &arena;
        let mut node = place;
        for _ in 0..STEPS {
            // SAFETY: `link` put addresses of nodes there.
            node = opaque(unsafe { *(node as *const u64) });
        }
        place = node;
        place
    })
}

fn two_chains<const BYTES: usize, const STEPS: usize>() -> Body {
    let (mut one, mut other) = (Arena::new(BYTES / 2), Arena::new(BYTES / 2));
    link(&mut one, 64, 12);
    link(&mut other, 64, 13);
    let (mut a, mut b) = (one.address() as u64, other.address() as u64);
    Box::new(move || {
        let _alive = (&one, &other);
        let (mut node, mut next_node) = (a, b);
        for _ in 0..STEPS {
            // SAFETY: `link` put addresses of nodes there.
            unsafe {
                node = opaque(*(node as *const u64));
                next_node = opaque(*(next_node as *const u64));
            }
        }
        (a, b) = (node, next_node);
        a ^ b
    })
}

fn payload<const BYTES: usize, const STRIDE: usize, const STEPS: usize>() -> Body {
    let mut arena = Arena::new(BYTES / STRIDE * STRIDE);
    link(&mut arena, STRIDE, 14);
    let mut place = arena.address() as u64;
    Box::new(move || {
        let _alive = &arena;
        let (mut sum, mut node) = (0_u64, place);
        for _ in 0..STEPS {
            // SAFETY: `link` put addresses of nodes there, and a payload behind each.
            unsafe {
                sum = opaque(sum.wrapping_add(*(node as *const u64).add(1)));
                node = opaque(*(node as *const u64));
            }
        }
        place = node;
        sum
    })
}

fn cycle_of_indices(count: usize) -> Vec<u16> {
    let order = permutation(count, 15);
    let mut next = vec![0; count];
    for (node, next_node) in order.iter().zip(order.iter().cycle().skip(1)) {
        next[*node] = *next_node as u16;
    }
    next
}

fn indices<const COUNT: usize, const STEPS: usize>() -> Body {
    let next = cycle_of_indices(COUNT);
    let mut place = 0;
    Box::new(move || {
        let mut node = place;
        for _ in 0..STEPS {
            node = opaque(u64::from(next[node as usize]));
        }
        place = node;
        place
    })
}

/// Chase an index that leads to a second table, whose entry has a part in the next index.
fn two_tables<const BYTES: usize, const STEPS: usize>() -> Body {
    let next = cycle_of_indices(16 << 10);
    let mut table = Arena::new(BYTES);
    let spread = BYTES / 8 / next.len();
    let mut place = 0;
    Box::new(move || {
        let zeros = table.words();
        let mut node = place;
        for step in 0..STEPS {
            let zero = zeros[node as usize * spread + (step & 15)];
            node = opaque(u64::from(next[node as usize]) + zero);
        }
        place = node;
        place
    })
}
