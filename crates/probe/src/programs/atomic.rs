//! Locked instructions, by one thread: what they cost when nobody else wants the line.

use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::Rng;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

pub const PROGRAMS: &[Program] = &[
    fit("atomic-add", "lock xadd of one word", add::<30_000>),
    fit("atomic-compare", "a lock cmpxchg loop", compare::<25_000>),
    fit("atomic-work", "lock xadd with 20 instructions between", work::<20_000>),
    held_out("atomic-bits", "lock or, lock and of random words of 32 kB", bits::<20_000>),
    held_out("atomic-spinlock", "a spinlock taken and given back, with work inside", spinlock::<20_000>),
    held_out("atomic-references", "references of two objects taken and dropped", references::<12_000>),
    held_out("atomic-exchange", "xchg of words of 512 kB in order", exchange::<20_000>),
];

fn add<const TIMES: u64>() -> Body {
    let word = AtomicU64::new(0);
    Box::new(move || (0..TIMES).fold(0, |sum, i| sum ^ opaque(word.fetch_add(i, SeqCst))))
}

fn compare<const TIMES: u64>() -> Body {
    let word = AtomicU64::new(0);
    Box::new(move || {
        for i in 0..TIMES {
            let mut current = word.load(Relaxed);
            while let Err(now) = word.compare_exchange(current, opaque(current ^ i), AcqRel, Relaxed) {
                current = now;
            }
        }
        word.load(Relaxed)
    })
}

fn work<const TIMES: u64>() -> Body {
    let word = AtomicU64::new(0);
    let mut rng = Rng::new(131);
    Box::new(move || {
        (0..TIMES).fold(0, |sum, _| {
            let value = rng.next() ^ rng.next();
            sum ^ opaque(word.fetch_add(value, SeqCst))
        })
    })
}

fn bits<const TIMES: u64>() -> Body {
    let words: Vec<AtomicU64> = (0..4096).map(AtomicU64::new).collect();
    let mut rng = Rng::new(132);
    Box::new(move || {
        for _ in 0..TIMES / 2 {
            let place = rng.below(4096) as usize;
            words[place].fetch_or(opaque(1 << (place & 63)), SeqCst);
            words[4095 - place].fetch_and(opaque(!(1 << (place & 31))), SeqCst);
        }
        words[0].load(Relaxed)
    })
}

fn spinlock<const TIMES: u64>() -> Body {
    let lock = AtomicU64::new(0);
    let mut counters = [0_u64; 64];
    Box::new(move || {
        for i in 0..TIMES {
            while lock.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
                std::hint::spin_loop();
            }
            counters[opaque(i & 63) as usize] += i;
            counters[opaque(i >> 3 & 63) as usize] ^= 1;
            lock.store(0, Release);
        }
        counters[0]
    })
}

fn references<const TIMES: u64>() -> Body {
    let objects = [AtomicU64::new(1), AtomicU64::new(1)];
    Box::new(move || {
        let mut freed = 0;
        for i in 0..TIMES {
            let (one, other) = (&objects[opaque(i & 1) as usize], &objects[opaque(!i & 1) as usize]);
            one.fetch_add(1, Relaxed);
            other.fetch_add(1, Relaxed);
            if one.fetch_sub(1, Release) == 1 {
                freed = opaque(freed + 1);
            }
        }
        objects.iter().for_each(|object| object.store(1, Relaxed));
        freed
    })
}

fn exchange<const TIMES: usize>() -> Body {
    let words: Vec<AtomicU64> = (0..65536).map(AtomicU64::new).collect();
    Box::new(move || (0..TIMES).fold(0, |carried, i| words[i * 3 % 65536].swap(opaque(carried), SeqCst)))
}
