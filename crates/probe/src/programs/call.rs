//! Calls: direct, nested, recursive, through pointers and tables of methods.

use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::Rng;

pub const PROGRAMS: &[Program] = &[
    fit("call-direct", "one small function", direct::<150_000>),
    fit("call-fibonacci", "fib(22), recursively", fibonacci),
    fit("call-pointer", "one function through a pointer", pointer::<150_000>),
    fit("call-virtual-random", "methods of four types at random", virtual_random::<40_000>),
    fit("call-deep", "recursion 100 deep: more than a return stack holds", deep::<600>),
    held_out("call-takeuchi", "tak(18, 12, 6), recursively", takeuchi),
    held_out("call-virtual-sorted", "methods of four types, sorted by type", virtual_sorted::<100_000>),
    held_out("call-rotating", "three callbacks in turn", rotating::<100_000>),
    held_out("call-nested", "five functions, each calling the next", nested::<40_000>),
    held_out("call-many-arguments", "six arguments, some on the stack", many_arguments::<60_000>),
    held_out("call-ackermann", "ackermann(2, 200): deep and uneven", ackermann_2),
];

#[inline(never)]
fn small(x: u64) -> u64 {
    opaque(x + 3)
}

fn direct<const TIMES: u64>() -> Body {
    Box::new(|| (0..TIMES).fold(0, |x, _| small(x)))
}

#[inline(never)]
fn fib(n: u64) -> u64 {
    if n < 2 { n } else { opaque(fib(opaque(n - 1))) + fib(opaque(n - 2)) }
}

fn fibonacci() -> Body {
    Box::new(|| fib(opaque(22)))
}

fn pointer<const TIMES: u64>() -> Body {
    Box::new(|| {
        let mut x = 0;
        for _ in 0..TIMES {
            x = function(small)(x);
        }
        x
    })
}

/// Return the same function in a way that the compiler doesn't see through.
#[inline(always)]
fn function(function: fn(u64) -> u64) -> fn(u64) -> u64 {
    // SAFETY: the value isn't changed.
    unsafe { std::mem::transmute(opaque(function as usize as u64)) }
}

trait Shape {
    fn area(&self, scale: u64) -> u64;
}

struct Line(u64);
struct Square(u64);
struct Box2(u64, u64);
struct Dot;

impl Shape for Line {
    fn area(&self, scale: u64) -> u64 {
        opaque(self.0 + scale)
    }
}

impl Shape for Square {
    fn area(&self, scale: u64) -> u64 {
        opaque(self.0 ^ scale) + self.0
    }
}

impl Shape for Box2 {
    fn area(&self, scale: u64) -> u64 {
        opaque(self.0 + self.1) ^ scale
    }
}

impl Shape for Dot {
    fn area(&self, scale: u64) -> u64 {
        opaque(scale >> 1)
    }
}

const SHAPES: u64 = 1024;

/// Return shapes of the type that `choose` gives.
fn shapes(mut choose: impl FnMut(u64) -> u64) -> Vec<Box<dyn Shape>> {
    (0..SHAPES)
        .map(|i| -> Box<dyn Shape> {
            match choose(i) {
                0 => Box::new(Line(i)),
                1 => Box::new(Square(i)),
                2 => Box::new(Box2(i, 2 * i)),
                _ => Box::new(Dot),
            }
        })
        .collect()
}

fn virtual_random<const TIMES: u64>() -> Body {
    let mut rng = Rng::new(31);
    let shapes = shapes(|_| rng.below(4));
    let mut rng = Rng::new(32);
    Box::new(move || (0..TIMES).fold(0_u64, |sum, i| sum ^ shapes[rng.below(SHAPES) as usize].area(i)))
}

fn virtual_sorted<const TIMES: u64>() -> Body {
    let shapes = shapes(|i| i * 4 / SHAPES);
    Box::new(move || (0..TIMES).fold(0_u64, |sum, i| sum ^ shapes[(i % SHAPES) as usize].area(i)))
}

#[inline(never)]
fn count_down(n: u64) -> u64 {
    if n == 0 { 0 } else { opaque(count_down(opaque(n - 1)) + 1) }
}

fn deep<const TIMES: u64>() -> Body {
    Box::new(|| (0..TIMES).fold(0, |sum, _| sum ^ count_down(opaque(100))))
}

#[inline(never)]
fn tak(x: u64, y: u64, z: u64) -> u64 {
    if y >= x {
        return z;
    }
    tak(tak(opaque(x) - 1, y, z), tak(opaque(y).wrapping_sub(1), z, x), tak(opaque(z).wrapping_sub(1), x, y))
}

fn takeuchi() -> Body {
    Box::new(|| tak(opaque(18), opaque(12), opaque(6)))
}

#[inline(never)]
fn double(x: u64) -> u64 {
    opaque(x << 1)
}

#[inline(never)]
fn mix(x: u64) -> u64 {
    opaque(x ^ (x >> 7))
}

fn rotating<const TIMES: u64>() -> Body {
    let callbacks = [small, double, mix].map(function);
    Box::new(move || {
        let (mut x, mut next) = (1, 0);
        for _ in 0..TIMES {
            x = callbacks[next](x);
            next = if next == 2 { 0 } else { next + 1 };
        }
        x
    })
}

#[inline(never)]
fn level<const N: u64>(x: u64, y: u64) -> u64 {
    let callee: fn(u64, u64) -> u64 = match N {
        1 => return opaque(x ^ y),
        2 => level::<1>,
        3 => level::<2>,
        4 => level::<3>,
        _ => level::<4>,
    };
    opaque(callee(opaque(x + N), y) + y)
}

fn nested<const TIMES: u64>() -> Body {
    Box::new(|| (0..TIMES).fold(0_u64, |sum, i| sum ^ level::<5>(i, sum >> 3)))
}

#[inline(never)]
extern "C" fn eight(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64) -> u64 {
    opaque(a + b + c) ^ opaque(d + e + f) ^ opaque(g + h)
}

fn many_arguments<const TIMES: u64>() -> Body {
    Box::new(|| (0..TIMES).fold(0_u64, |sum, i| sum ^ eight(i, 1, opaque(i), 3, i + 4, 5, opaque(i + 6), 7)))
}

#[inline(never)]
fn ackermann(m: u64, n: u64) -> u64 {
    match (m, n) {
        (0, _) => n + 1,
        (_, 0) => ackermann(opaque(m) - 1, 1),
        _ => {
            let inner = ackermann(m, opaque(n) - 1);
            ackermann(m - 1, inner)
        }
    }
}

fn ackermann_2() -> Body {
    Box::new(|| ackermann(opaque(2), opaque(200)))
}
