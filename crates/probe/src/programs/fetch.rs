//! Code that fetching decides: more than the op cache, the first cache, the second cache or the branch target buffer
//! holds; straight on, in loops, and called or jumped to in random order. No branch in it is hard to predict.

use crate::code::Code;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::permutation;

pub const PROGRAMS: &[Program] = &[
    fit("fetch-straight-10k", "10 kB, straight on", || straight(10_000, 100)),
    fit("fetch-straight-120k", "120 kB, straight on", || straight(120_000, 8)),
    fit("fetch-straight-3m", "3 MB, straight on", || straight(3_000_000, 1)),
    fit("fetch-loops-100k", "loops of 400 B, each gone through three times, 100 kB", || loops(250, 400, 4)),
    fit("fetch-calls-40k", "200 functions of 200 B, called in random order", || calls(200, 200, 20)),
    fit("fetch-calls-300k", "1500 functions of 200 B, called in random order", || calls(1500, 200, 4)),
    fit("fetch-jumps-4000", "4000 blocks of 32 B, jumped to in random order", || jumps(4000, 32, 10)),
    fit("fetch-checks-150k", "150 kB with a jump that is never taken in every 24 B", || checks(150_000, 24, 6)),
    held_out("fetch-straight-24k", "24 kB, straight on", || straight(24_000, 40)),
    held_out("fetch-straight-600k", "600 kB, straight on", || straight(600_000, 2)),
    held_out("fetch-loops-20k", "loops of 160 B, each gone through three times, 20 kB", || loops(125, 160, 12)),
    held_out("fetch-loops-2500k", "loops of 600 B, each gone through three times, 2.5 MB", || loops(4200, 600, 1)),
    held_out("fetch-calls-20k", "130 functions of 150 B, called in random order", || calls(130, 150, 30)),
    held_out("fetch-calls-120k", "400 functions of 300 B, called in random order", || calls(400, 300, 6)),
    held_out("fetch-calls-2500k", "10000 functions of 250 B, called in random order", || calls(10_000, 250, 1)),
    held_out("fetch-jumps-600", "600 blocks of 40 B, jumped to in random order", || jumps(600, 40, 50)),
    held_out("fetch-jumps-20000", "20000 blocks of 48 B, jumped to in random order", || jumps(20_000, 48, 2)),
    held_out("fetch-checks-50k", "50 kB with a jump that is never taken in every 30 B", || checks(50_000, 30, 20)),
];

/// Run the code from an entry on, several times.
fn running(code: Code, entry: usize, times: usize) -> Body {
    Box::new(move || (0..times).fold(0, |sum: u64, _| sum ^ code.run(entry)))
}

fn straight(bytes: usize, times: usize) -> Body {
    let mut code = Code::new(bytes + 64);
    code.fill(bytes);
    code.ret();
    running(code, 0, times)
}

fn loops(count: usize, size: usize, times: usize) -> Body {
    let mut code = Code::new((count + 1) * (size + 32));
    for _ in 0..count {
        code.set_counter(3);
        let source = code.end();
        code.fill(source + size);
        code.repeat(source);
    }
    code.ret();
    running(code, 0, times)
}

/// Write functions, and behind them one that calls each once.
fn calls(count: usize, size: usize, times: usize) -> Body {
    let mut code = Code::new(count * (size + 16) + 64);
    for number in 1..=count {
        code.fill(number * size - 1);
        code.ret();
    }
    let entry = code.end();
    for function in permutation(count, 184) {
        code.call(function * size);
    }
    code.ret();
    running(code, entry, times)
}

/// Write a chain of blocks; the last one returns.
fn jumps(count: usize, size: usize, times: usize) -> Body {
    let mut code = Code::new(count * size);
    let order = permutation(count, 185);
    for (current, next) in order.iter().zip(order.iter().skip(1)) {
        code.go_on_at(current * size);
        code.fill((current + 1) * size - 5);
        code.jump(next * size);
    }
    code.go_on_at(order[count - 1] * size);
    code.ret();
    running(code, order[0] * size, times)
}

/// Write checks like a kernel's: most conditional branches are errors that don't happen.
fn checks(bytes: usize, apart: usize, times: usize) -> Body {
    let mut code = Code::new(bytes + 64);
    while code.end() + apart < bytes {
        let target = code.end() + apart - 9;
        code.fill(target);
        code.check(bytes);
    }
    code.fill(bytes);
    code.ret();
    running(code, 0, times)
}
