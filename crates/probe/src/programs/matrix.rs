//! Matrices of words.

use crate::arena::Arena;
use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};

pub const PROGRAMS: &[Program] = &[
    fit("matrix-product", "product of two 40 x 40 matrices", product::<40>),
    fit("matrix-columns", "sum of a 512 x 512 matrix by columns", columns::<512, 1>),
    held_out("matrix-transpose", "transposition of a 300 x 300 matrix", transpose::<300>),
    held_out("matrix-stencil", "five-point stencil on 200 x 200", stencil::<200>),
    held_out("matrix-paths", "shortest paths between 40 nodes", paths::<40>),
    held_out("matrix-blocked", "product of two 64 x 64 matrices by blocks of 8", blocked::<64>),
];

fn matrix(n: usize) -> Arena {
    let mut arena = Arena::new(8 * n * n);
    arena.words().iter_mut().enumerate().for_each(|(i, word)| *word = (i as u64 * 2_654_435_761) >> 5 & 0xffff);
    arena
}

fn product<const N: usize>() -> Body {
    let (mut a, mut b, mut c) = (matrix(N), matrix(N), matrix(N));
    Box::new(move || {
        let (a, b, c) = (a.words(), b.words(), c.words());
        for i in 0..N {
            for j in 0..N {
                c[i * N + j] = (0..N).fold(0, |sum, k| opaque(sum + a[i * N + k] * b[k * N + j]));
            }
        }
        c[0]
    })
}

fn columns<const N: usize, const TIMES: usize>() -> Body {
    let mut a = matrix(N);
    Box::new(move || {
        let a = a.words();
        let mut sum = 0;
        for _ in 0..TIMES {
            for column in 0..N {
                for row in 0..N {
                    sum = opaque(sum + a[row * N + column]);
                }
            }
        }
        sum
    })
}

fn transpose<const N: usize>() -> Body {
    let (mut a, mut b) = (matrix(N), matrix(N));
    Box::new(move || {
        let (a, b) = (a.words(), b.words());
        for row in 0..N {
            for column in 0..N {
                b[column * N + row] = opaque(a[row * N + column]);
            }
        }
        b[1]
    })
}

fn stencil<const N: usize>() -> Body {
    let (mut a, mut b) = (matrix(N), matrix(N));
    Box::new(move || {
        let (a, b) = (a.words(), b.words());
        for row in 1..N - 1 {
            for column in 1..N - 1 {
                let place = row * N + column;
                b[place] = opaque((4 * a[place] + a[place - 1] + a[place + 1] + a[place - N] + a[place + N]) >> 3);
            }
        }
        b[N + 1]
    })
}

fn paths<const N: usize>() -> Body {
    let mut lengths = matrix(N);
    Box::new(move || {
        let lengths = lengths.words();
        for middle in 0..N {
            for source in 0..N {
                for target in 0..N {
                    let detour = opaque(lengths[source * N + middle] + lengths[middle * N + target]);
                    if detour < lengths[source * N + target] {
                        lengths[source * N + target] = opaque(detour);
                    }
                }
            }
        }
        lengths[1]
    })
}

fn blocked<const N: usize>() -> Body {
    const BLOCK: usize = 8;
    let (mut a, mut b, mut c) = (matrix(N), matrix(N), matrix(N));
    Box::new(move || {
        let (a, b, c) = (a.words(), b.words(), c.words());
        for (i0, k0) in (0..N).step_by(BLOCK).flat_map(|i| (0..N).step_by(BLOCK).map(move |k| (i, k))) {
            for i in i0..i0 + BLOCK {
                for k in k0..k0 + BLOCK {
                    let factor = a[i * N + k];
                    for j in 0..N {
                        c[i * N + j] = opaque(c[i * N + j].wrapping_add(factor.wrapping_mul(b[k * N + j])));
                    }
                }
            }
        }
        c[0]
    })
}
