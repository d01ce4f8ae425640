//! State machines and interpreters.

use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::Rng;

pub const PROGRAMS: &[Program] = &[
    fit("machine-switch", "an interpreter of eight operations, a fixed program", switch::<3_000>),
    fit("machine-switch-random", "the same with random operations", switch_random::<25_000>),
    fit("machine-table", "an automaton of 64 states over random bytes", automaton::<16384, 6>),
    held_out("machine-stack", "a stack machine, operations through a table of functions", stack::<3_000>),
    held_out("machine-utf8", "UTF-8 decoded and checked", utf8::<4>).slow_to_warm(),
    held_out("machine-filter", "a packet filter's program over random packets", filter::<4_000>),
    held_out("machine-tape", "a tape machine that copies and adds", tape::<100>),
    held_out("machine-huffman", "variable-length codes decoded bit by bit", huffman::<60_000>),
];

#[inline(always)]
fn operate(operation: u8, a: &mut u64, b: &mut u64) {
    match operation & 7 {
        0 => *a = opaque(a.wrapping_add(*b)),
        1 => *b = opaque(*b ^ *a),
        2 => *a = opaque(a.rotate_left(3)),
        3 => *b = opaque(b.wrapping_sub(7)),
        4 => std::mem::swap(a, b),
        5 => *a = opaque(a.wrapping_mul(5)),
        6 => *b = opaque(*b >> 1 | 1 << 40),
        _ => *a = opaque(!*a),
    }
}

fn switch<const TIMES: usize>() -> Body {
    let program: Vec<u8> = [0, 1, 5, 2, 3, 0, 4, 6, 1, 7, 2].into();
    Box::new(move || {
        let (mut a, mut b) = (1, 2);
        for _ in 0..TIMES {
            for operation in &program {
                operate(opaque((*operation).into()) as u8, &mut a, &mut b);
            }
        }
        a ^ b
    })
}

fn switch_random<const TIMES: usize>() -> Body {
    let mut rng = Rng::new(161);
    Box::new(move || {
        let (mut a, mut b) = (1, 2);
        for _ in 0..TIMES {
            operate((rng.next() >> 40) as u8, &mut a, &mut b);
        }
        a ^ b
    })
}

fn automaton<const BYTES: usize, const TIMES: usize>() -> Body {
    let mut rng = Rng::new(162);
    let table: Vec<[u8; 256]> = (0..64).map(|_| std::array::from_fn(|_| rng.below(64) as u8)).collect();
    let text: Vec<u8> = (0..BYTES).map(|_| rng.next() as u8).collect();
    Box::new(move || {
        let mut state = 0;
        for _ in 0..TIMES {
            for byte in &text {
                state = opaque(table[state as usize][usize::from(*byte)].into());
            }
        }
        state
    })
}

struct Stack {
    values: [u64; 16],
    top: usize,
}

impl Stack {
    fn push(&mut self, value: u64) {
        self.top = (self.top + 1) & 15;
        self.values[self.top] = opaque(value);
    }

    fn pop(&mut self) -> u64 {
        let value = self.values[self.top];
        self.top = self.top.wrapping_sub(1) & 15;
        value
    }
}

type Operation = fn(&mut Stack);

const OPERATIONS: [Operation; 5] = [
    |stack| stack.push(7),
    |stack| {
        let sum = stack.pop().wrapping_add(stack.pop());
        stack.push(sum);
    },
    |stack| {
        let value = stack.pop();
        stack.push(value);
        stack.push(value);
    },
    |stack| {
        let difference = stack.pop() ^ stack.pop() >> 1;
        stack.push(difference);
    },
    |stack| {
        stack.pop();
    },
];

fn stack<const TIMES: usize>() -> Body {
    let program: Vec<u8> = [0, 2, 1, 0, 3, 2, 2, 1, 3, 0, 1, 4].into();
    Box::new(move || {
        let mut stack = Stack { values: [1; 16], top: 0 };
        for _ in 0..TIMES {
            for operation in &program {
                OPERATIONS[opaque((*operation).into()) as usize](&mut stack);
            }
        }
        stack.pop()
    })
}

fn utf8<const TIMES: usize>() -> Body {
    let mut rng = Rng::new(163);
    let character = |_| char::from_u32([0x40, 0x100, 0x900, 0x1_0400][rng.below(4) as usize] + rng.below(60) as u32);
    let text: String = (0..4000).filter_map(character).collect();
    Box::new(move || {
        let mut sum = 0;
        for _ in 0..TIMES {
            let bytes = text.as_bytes();
            let mut place = 0;
            while place < bytes.len() {
                let first = opaque(bytes[place].into());
                let (length, bits) = match first {
                    0..0x80 => (1, first),
                    0x80..0xe0 => (2, first & 31),
                    0xe0..0xf0 => (3, first & 15),
                    _ => (4, first & 7),
                };
                let rest = bytes[place + 1..place + length].iter();
                sum ^= rest.fold(bits, |code, byte| opaque(code << 6 | u64::from(byte & 63)));
                place += length;
            }
        }
        sum
    })
}

/// (operation, value, jump if not)
const FILTER: [(u8, u64, usize); 7] =
    [(0, 12, 0), (1, 0x08, 6), (0, 23, 0), (1, 0x06, 6), (0, 36, 0), (2, 0x40, 6), (3, 0, 0)];

fn filter<const TIMES: usize>() -> Body {
    let mut rng = Rng::new(164);
    Box::new(move || {
        let mut packet = [0_u8; 64];
        let mut accepted = 0;
        for _ in 0..TIMES {
            let random = rng.next();
            packet[12] = if random & 3 == 0 { 0x86 } else { 0x08 };
            packet[23] = if random & 12 == 0 { 0x11 } else { 0x06 };
            packet[36] = (random >> 8) as u8;
            let (mut accumulator, mut place) = (0, 0);
            while let Some((operation, value, or_else)) = FILTER.get(place) {
                place += 1;
                match opaque((*operation).into()) {
                    0 => accumulator = u64::from(packet[*value as usize]),
                    1 if accumulator != *value => place = *or_else + 1,
                    2 if accumulator < *value => place = *or_else + 1,
                    3 => accepted = opaque(accepted + 1),
                    _ => {}
                }
            }
        }
        accepted
    })
}

fn tape<const TIMES: usize>() -> Body {
    // Adds cell 0 to cells 1 and 2, over and over.
    let program = b"[->+>+<<]";
    Box::new(move || {
        let mut cells = [0_u64; 8];
        for _ in 0..TIMES {
            cells[0] = 50;
            let (mut place, mut cell) = (0_usize, 0_usize);
            while place < program.len() {
                match opaque(program[place].into()) as u8 {
                    b'+' => cells[cell & 7] += 1,
                    b'-' => cells[cell & 7] -= 1,
                    b'>' => cell += 1,
                    b'<' => cell -= 1,
                    b'[' if cells[cell & 7] == 0 => place = 8,
                    b']' if cells[cell & 7] != 0 => place = 0,
                    _ => {}
                }
                place += 1;
            }
        }
        cells[1]
    })
}

fn huffman<const BITS: usize>() -> Body {
    let mut rng = Rng::new(165);
    // Inner nodes 0 to 6 with two children each; 8 and above are symbols.
    let children: [[u8; 2]; 7] = [[8, 1], [2, 3], [9, 10], [4, 5], [11, 12], [13, 6], [14, 15]];
    Box::new(move || {
        let (mut node, mut sum) = (0_u8, 0);
        let mut word = 0;
        for bit in 0..BITS {
            if bit & 63 == 0 {
                word = rng.next();
            }
            node = children[usize::from(node)][(word & 1) as usize];
            word >>= 1;
            if opaque(node.into()) >= 8 {
                sum = opaque(sum + u64::from(node));
                node = 0;
            }
        }
        sum
    })
}
