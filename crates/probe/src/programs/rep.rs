//! REP string instructions: how kernels copy and clear.

use crate::arena::Arena;
use crate::program::{Body, Program, fit, held_out};
use std::arch::asm;

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

pub const PROGRAMS: &[Program] = &[
    fit("movsq-64", "rep movsq of 64 B", copy_words::<64, 12_000>),
    fit("movsb-256", "rep movsb of 256 B", copy_bytes::<256, 8_000>),
    fit("movsq-4096", "rep movsq of 4 kB", copy_words::<4096, 2_000>),
    fit("movsb-16k", "rep movsb of 16 kB", copy_bytes::<{ 16 * KB }, 300>),
    fit("movsb-1m", "rep movsb of 1 MB", copy_bytes::<{ MB }, 4>),
    fit("movsq-mem", "rep movsq of 256 kB all over 64 MB", far_copy::<{ 64 * MB }, { 256 * KB }, 8>),
    fit("stosq-128", "rep stosq of 128 B", clear_words::<128, 12_000>),
    fit("stosb-4096", "rep stosb of 4 kB", clear_bytes::<4096, 2_000>),
    fit("stosb-256k", "rep stosb of 256 kB", clear_bytes::<{ 256 * KB }, 20>),
    fit("stosb-mem", "rep stosb of 1 MB all over 96 MB", far_clear::<{ 96 * MB }, { MB }, 4>),
    held_out("movsq-200", "rep movsq of 200 B", copy_words::<200, 10_000>),
    held_out("movsb-40", "rep movsb of 40 B", copy_bytes::<40, 12_000>),
    held_out("movsb-1500", "rep movsb of 1500 B, a packet", copy_bytes::<1500, 3_000>),
    held_out("movsb-100k", "rep movsb of 100 kB", copy_bytes::<{ 100 * KB }, 30>),
    held_out("movsq-1500k", "rep movsq of 1500 kB", copy_words::<{ 1500 * KB }, 4>),
    held_out("stosq-page", "rep stosq of pages all over 2 MB", clear_pages::<{ 2 * MB }, 1024>),
    held_out("stosb-700", "rep stosb of 700 B", clear_bytes::<700, 5_000>),
    held_out("stosq-40m", "rep stosq of 40 MB, 4 MB a time", clear_pages::<{ 40 * MB }, 1024>),
];

/// Run `rep movsb`, or `rep movsq` where BYTES is a multiple of 8 and `words` is set.
#[inline(always)]
fn movs(target: usize, source: usize, count: usize, words: bool) {
    // SAFETY: callers give ranges of their own arenas.
    unsafe {
        if words {
            asm!("rep movsq", inout("rcx") count => _, inout("rdi") target => _, inout("rsi") source => _, options(nostack));
        } else {
            asm!("rep movsb", inout("rcx") count => _, inout("rdi") target => _, inout("rsi") source => _, options(nostack));
        }
    }
}

#[inline(always)]
fn stos(target: usize, count: usize, words: bool) {
    // SAFETY: callers give ranges of their own arenas.
    unsafe {
        if words {
            asm!("rep stosq", inout("rcx") count => _, inout("rdi") target => _, in("rax") 0, options(nostack));
        } else {
            asm!("rep stosb", inout("rcx") count => _, inout("rdi") target => _, in("rax") 0, options(nostack));
        }
    }
}

fn copy<const BYTES: usize>(times: usize, words: bool) -> Body {
    let (source, target) = (Arena::new(BYTES), Arena::new(BYTES));
    Box::new(move || {
        for _ in 0..times {
            if words {
                movs(target.address(), source.address(), BYTES / 8, true);
            } else {
                movs(target.address(), source.address(), BYTES, false);
            }
        }
        0
    })
}

fn copy_words<const BYTES: usize, const TIMES: usize>() -> Body {
    copy::<BYTES>(TIMES, true)
}

fn copy_bytes<const BYTES: usize, const TIMES: usize>() -> Body {
    copy::<BYTES>(TIMES, false)
}

fn clear<const BYTES: usize>(times: usize, words: bool) -> Body {
    let target = Arena::new(BYTES);
    Box::new(move || {
        for _ in 0..times {
            if words {
                stos(target.address(), BYTES / 8, true);
            } else {
                stos(target.address(), BYTES, false);
            }
        }
        0
    })
}

fn clear_words<const BYTES: usize, const TIMES: usize>() -> Body {
    clear::<BYTES>(TIMES, true)
}

fn clear_bytes<const BYTES: usize, const TIMES: usize>() -> Body {
    clear::<BYTES>(TIMES, false)
}

/// Go on where it stopped, so that nothing is in any cache.
fn far_copy<const BYTES: usize, const PART: usize, const TIMES: usize>() -> Body {
    let (source, target) = (Arena::new(BYTES), Arena::new(BYTES));
    let mut place = 0;
    Box::new(move || {
        for _ in 0..TIMES {
            movs(target.address() + place, source.address() + place, PART / 8, true);
            place = (place + PART) % BYTES;
        }
        0
    })
}

fn far_clear<const BYTES: usize, const PART: usize, const TIMES: usize>() -> Body {
    let target = Arena::new(BYTES);
    let mut place = 0;
    Box::new(move || {
        for _ in 0..TIMES {
            stos(target.address() + place, PART, false);
            place = (place + PART) % BYTES;
        }
        0
    })
}

/// Clear pages in an order that no prefetcher follows.
fn clear_pages<const BYTES: usize, const PAGES: usize>() -> Body {
    let target = Arena::new(BYTES);
    let mut page = 0;
    Box::new(move || {
        for _ in 0..PAGES {
            stos(target.address() + page * 4096, 512, true);
            page = (page + 197) % (BYTES / 4096);
        }
        0
    })
}
