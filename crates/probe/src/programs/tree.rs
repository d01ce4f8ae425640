//! Trees.

use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::{Rng, permutation};

pub const PROGRAMS: &[Program] = &[
    fit("tree-lookup-l2", "lookup in a binary tree of 4 Ki nodes", lookup::<{ 4 << 10 }, 3_000>).slow_to_warm(),
    fit("tree-lookup-llc", "lookup in a binary tree of 128 Ki nodes", lookup::<{ 128 << 10 }, 1_500>).slow_to_warm(),
    fit("tree-radix", "lookup in a radix tree of 64-way nodes", radix::<15_000>),
    held_out("tree-walk", "in-order walk of a binary tree of 32 Ki nodes", walk::<{ 32 << 10 }>).slow_to_warm(),
    held_out("tree-insert", "random insertion of 3000 keys into a binary tree", insertion::<3_000>),
    held_out("tree-b", "lookup in a B-tree of 16 keys a node", b_tree::<4_000>),
    held_out("tree-trie", "lookup of 6-letter words in a trie", trie::<10_000>),
];

#[derive(Clone, Copy)]
struct Node {
    key: u64,
    /// Smaller and greater.
    children: [u32; 2],
}

const NONE: u32 = u32::MAX;

#[inline(always)]
fn insert(nodes: &mut Vec<Node>, key: u64) {
    let new = nodes.len() as u32;
    let mut place = 0_usize;
    while place < nodes.len() {
        let node = &mut nodes[place];
        let child = &mut node.children[usize::from(key > node.key)];
        if *child == NONE {
            *child = new;
            break;
        }
        place = *child as usize;
    }
    nodes.push(Node { key, children: [NONE; 2] });
}

fn random_tree(count: usize) -> Vec<Node> {
    let mut nodes = Vec::with_capacity(count);
    permutation(count, 71).into_iter().for_each(|key| insert(&mut nodes, key as u64));
    nodes
}

fn lookup<const NODES: usize, const TIMES: usize>() -> Body {
    let (nodes, mut rng) = (random_tree(NODES), Rng::new(72));
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let key = rng.below(NODES as u64);
            let mut place = 0;
            loop {
                let node = &nodes[place as usize];
                if node.key == key {
                    break;
                }
                // Opaque on both sides: a branch, as a kernel's rb_find has.
                place = if key < node.key { opaque(node.children[0].into()) } else { opaque(node.children[1].into()) };
            }
            sum += place;
        }
        sum
    })
}

fn walk<const NODES: usize>() -> Body {
    let nodes = random_tree(NODES);
    let mut stack = Vec::with_capacity(100);
    Box::new(move || {
        let (mut sum, mut place) = (0, 0);
        loop {
            while place != NONE {
                stack.push(place);
                place = nodes[place as usize].children[0];
            }
            let Some(top) = stack.pop() else { break };
            sum = opaque(sum ^ nodes[top as usize].key);
            place = nodes[top as usize].children[1];
        }
        sum
    })
}

fn insertion<const COUNT: usize>() -> Body {
    let mut nodes = Vec::with_capacity(COUNT);
    let mut rng = Rng::new(73);
    Box::new(move || {
        nodes.clear();
        for _ in 0..COUNT {
            insert(&mut nodes, opaque(rng.next()));
        }
        nodes[COUNT - 1].key
    })
}

/// Look up in three levels of 64 slots, as the kernel's page cache has.
fn radix<const TIMES: usize>() -> Body {
    let mut slots = vec![0_u32; 64];
    for path in 0..64 * 8 {
        let (top, middle) = (path / 8, (path * 7) % 64);
        if slots[top] == 0 {
            slots[top] = slots.len() as u32;
            slots.extend([0; 64]);
        }
        let place = slots[top] as usize + middle;
        slots[place] = slots.len() as u32;
        slots.extend(1..=64);
    }
    let mut rng = Rng::new(74);
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let index = rng.next() as usize;
            let mut node = 0;
            for shift in [12, 6, 0] {
                node = slots[node + (index >> shift & 63)] as usize;
                if node == 0 {
                    break;
                }
            }
            sum = opaque(sum + node as u64);
        }
        sum
    })
}

fn b_tree<const TIMES: usize>() -> Body {
    // Four levels; the children of node n are 17 n + 1 to 17 n + 17.
    let nodes: Vec<[u64; 16]> = level_keys();
    let mut rng = Rng::new(75);
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let key = rng.next() >> 40;
            let mut place = 0;
            while let Some(keys) = nodes.get(place) {
                let mut child = 0;
                while child < 16 && keys[child] < key {
                    child += opaque(1) as usize;
                }
                place = 17 * place + 1 + child;
            }
            sum += place as u64;
        }
        sum
    })
}

fn level_keys() -> Vec<[u64; 16]> {
    let count = 1 + 17 + 17 * 17 + 17 * 17 * 17;
    let mut ranges = vec![(0_u64, 1_u64 << 24)];
    let mut nodes = Vec::new();
    while nodes.len() < count {
        let (low, high) = ranges[nodes.len()];
        let bound = |i: u64| low + (high - low) * i / 17;
        nodes.push(std::array::from_fn(|i| bound(i as u64 + 1)));
        ranges.extend((0..17).map(|i| (bound(i), bound(i + 1))));
    }
    nodes
}

fn trie<const TIMES: usize>() -> Body {
    let mut rng = Rng::new(76);
    let words: Vec<[u8; 6]> = (0..800).map(|_| std::array::from_fn(|_| rng.below(26) as u8)).collect();
    let mut nodes = vec![[0_u16; 26]];
    for word in &words {
        let mut place = 0;
        for letter in word {
            if nodes[place][usize::from(*letter)] == 0 {
                nodes[place][usize::from(*letter)] = nodes.len() as u16;
                nodes.push([0; 26]);
            }
            place = usize::from(nodes[place][usize::from(*letter)]);
        }
    }
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let mut place = 0;
            for letter in &words[rng.below(800) as usize] {
                place = usize::from(nodes[place][usize::from(*letter)]);
            }
            sum = opaque(sum + place as u64);
        }
        sum
    })
}
