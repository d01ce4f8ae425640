//! Linked lists.

use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::{Rng, permutation};

pub const PROGRAMS: &[Program] = &[
    fit("list-in-order", "walk of 512 nodes in the order of memory", in_order::<512, 100>),
    fit("list-condition", "walk of 8 Ki nodes in random order, one in four counted", condition::<8192, 5>)
        .slow_to_warm(),
    fit("list-condition-llc", "walk of 40 Ki nodes in random order, one in four counted", condition::<40960, 1>)
        .slow_to_warm(),
    held_out("list-move-to-front", "find one of 64 and move it to the front", move_to_front::<1_200>),
    held_out("list-merge", "merge two sorted lists of 4 Ki nodes", merge::<4096>),
    held_out("list-reverse", "reverse a list of 20 Ki nodes in random order", reverse::<20480>),
    held_out("list-queue", "a queue of 1 Ki nodes: append, remove, every node touched", queue::<20_000>),
];

struct Node {
    next: u32,
    flags: u32,
    value: u64,
    _rest: [u64; 6],
}

const NONE: u32 = u32::MAX;

/// Return nodes of 64 bytes that are linked in the given order, and the first of them.
fn linked(order: &[usize]) -> (Vec<Node>, u32) {
    let mut rng = Rng::new(81);
    let mut nodes: Vec<Node> = (0..order.len())
        .map(|_| Node { next: NONE, flags: rng.below(4) as u32, value: rng.below(1000), _rest: [0; 6] })
        .collect();
    for pair in order.windows(2) {
        nodes[pair[0]].next = pair[1] as u32;
    }
    (nodes, order[0] as u32)
}

fn in_order<const NODES: usize, const TIMES: usize>() -> Body {
    let (nodes, first) = linked(&(0..NODES).collect::<Vec<_>>());
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let mut place = first;
            while place != NONE {
                let node = &nodes[place as usize];
                sum = opaque(sum + node.value);
                place = node.next;
            }
        }
        sum
    })
}

fn condition<const NODES: usize, const TIMES: usize>() -> Body {
    let (nodes, first) = linked(&permutation(NODES, 82));
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let mut place = first;
            while let Some(node) = nodes.get(place as usize) {
                if opaque(node.flags.into()) == 3 {
                    sum = opaque(sum + node.value);
                }
                place = node.next;
            }
        }
        sum
    })
}

fn move_to_front<const TIMES: usize>() -> Body {
    let (mut nodes, mut first) = linked(&permutation(64, 83));
    let mut rng = Rng::new(84);
    Box::new(move || {
        for _ in 0..TIMES {
            let requested = rng.below(64) as u32;
            let (mut place, mut previous) = (first, NONE);
            while place != requested {
                previous = place;
                place = opaque(nodes[place as usize].next.into()) as u32;
            }
            if previous != NONE {
                nodes[previous as usize].next = nodes[place as usize].next;
                nodes[place as usize].next = first;
                first = place;
            }
        }
        first.into()
    })
}

fn merge<const NODES: usize>() -> Body {
    let (mut nodes, _) = linked(&permutation(2 * NODES, 85));
    let mut rng = Rng::new(86);
    Box::new(move || {
        // Two lists in the order of memory, with random values that grow.
        let mut values = [0, 0];
        for (i, node) in nodes.iter_mut().enumerate() {
            values[i & 1] += opaque(rng.next() >> 54);
            node.value = values[i & 1];
            node.next = if i + 2 < 2 * NODES { i as u32 + 2 } else { NONE };
        }
        let (mut left, mut right, mut last) = (0_u32, 1_u32, NONE);
        while left != NONE && right != NONE {
            let smallest = if nodes[left as usize].value <= nodes[right as usize].value {
                let smallest = left;
                left = opaque(nodes[left as usize].next.into()) as u32;
                smallest
            } else {
                let smallest = right;
                right = opaque(nodes[right as usize].next.into()) as u32;
                smallest
            };
            if let Some(last) = nodes.get_mut(last as usize) {
                last.next = smallest;
            }
            last = smallest;
        }
        last.into()
    })
}

fn reverse<const NODES: usize>() -> Body {
    let (mut nodes, mut first) = linked(&permutation(NODES, 87));
    Box::new(move || {
        let (mut place, mut previous) = (first, NONE);
        while place != NONE {
            let next = nodes[place as usize].next;
            nodes[place as usize].next = previous;
            previous = place;
            place = opaque(next.into()) as u32;
        }
        first = previous;
        first.into()
    })
}

fn queue<const TIMES: usize>() -> Body {
    let order = permutation(1024, 88);
    let (mut nodes, mut head) = linked(&order);
    let mut tail = order[1023] as u32;
    Box::new(move || {
        for _ in 0..TIMES {
            let front = head;
            head = nodes[front as usize].next;
            let node = &mut nodes[front as usize];
            node.next = NONE;
            node.value = opaque(node.value + 1);
            node.flags ^= 1;
            nodes[tail as usize].next = front;
            tail = front;
        }
        nodes[tail as usize].value
    })
}
