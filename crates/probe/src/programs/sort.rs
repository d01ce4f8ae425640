//! Sorting.

use crate::opaque::opaque;
use crate::program::{Body, Program, fit, held_out};
use crate::rng::Rng;

pub const PROGRAMS: &[Program] = &[
    fit("sort-insertion", "insertion sort of 32 random words", || sorting::<32, 150>(insertion)),
    fit("sort-quick", "quicksort of 2048 random words", || sorting::<2048, 2>(quick)),
    fit("sort-bubble", "bubble passes over 64 words that are almost sorted", almost_sorted::<64, 800>),
    held_out("sort-heap", "heapsort of 2048 random words", || sorting::<2048, 2>(heap)),
    held_out("sort-merge", "merge sort of 4096 random words", || sorting::<4096, 1>(merge)),
    held_out("sort-radix", "radix sort of 4096 random words by two bytes", || sorting::<4096, 6>(radix)),
    held_out("sort-shell", "shell sort of 1000 random words", || sorting::<1000, 4>(shell)),
];

/// Return a program that sorts; the part that sorts is inlined nowhere, so that each algorithm is code of its own.
fn sorting<const COUNT: usize, const TIMES: usize>(sort: fn(&mut [u64], &mut [u64])) -> Body {
    let (mut words, mut spare) = (vec![0; COUNT], vec![0; COUNT]);
    let mut rng = Rng::new(51);
    Box::new(move || {
        for _ in 0..TIMES {
            words.iter_mut().for_each(|word| *word = opaque(rng.next() >> 16));
            sort(&mut words, &mut spare);
        }
        words[0]
    })
}

#[inline(never)]
fn insertion(words: &mut [u64], _: &mut [u64]) {
    gapped(words, 1);
}

#[inline(always)]
fn gapped(words: &mut [u64], gap: usize) {
    for i in gap..words.len() {
        let value = words[i];
        let mut index = i;
        while index >= gap && words[index - gap] > value {
            words[index] = opaque(words[index - gap]);
            index -= gap;
        }
        words[index] = value;
    }
}

#[inline(never)]
fn shell(words: &mut [u64], _: &mut [u64]) {
    for gap in [301, 132, 57, 23, 10, 4, 1] {
        gapped(words, gap);
    }
}

#[inline(never)]
#[allow(clippy::only_used_in_recursion)] // all algorithms are called alike
fn quick(words: &mut [u64], spare: &mut [u64]) {
    if words.len() < 8 {
        return gapped(words, 1);
    }
    let pivot = words[words.len() / 2];
    let (mut low, mut high) = (0, words.len() - 1);
    loop {
        while words[low] < pivot {
            low += 1;
        }
        while words[high] > pivot {
            high -= 1;
        }
        if low >= high {
            break;
        }
        words.swap(low, high);
        low += 1;
        high -= 1;
    }
    let (left, right) = words.split_at_mut(low);
    quick(left, spare);
    quick(right, spare);
}

fn almost_sorted<const COUNT: usize, const PASSES: usize>() -> Body {
    let mut words: Vec<u64> = (0..COUNT as u64).collect();
    Box::new(move || {
        let mut swaps = 0;
        for pass in 0..PASSES {
            words.swap(pass % COUNT, (pass + 3) % COUNT);
            for i in 1..COUNT {
                if opaque(words[i - 1]) > words[i] {
                    words.swap(i - 1, i);
                    swaps += 1;
                }
            }
        }
        swaps
    })
}

fn sift(words: &mut [u64], mut root: usize, end: usize) {
    loop {
        let mut child = 2 * root + 1;
        if child >= end {
            return;
        }
        if child + 1 < end && words[child] < words[child + 1] {
            child += 1;
        }
        if words[root] >= words[child] {
            return;
        }
        words.swap(root, child);
        root = opaque(child as u64) as usize;
    }
}

#[inline(never)]
fn heap(words: &mut [u64], _: &mut [u64]) {
    for root in (0..words.len() / 2).rev() {
        sift(words, root, words.len());
    }
    for end in (1..words.len()).rev() {
        words.swap(0, end);
        sift(words, 0, end);
    }
}

#[inline(never)]
fn merge(words: &mut [u64], spare: &mut [u64]) {
    let mut width = 1;
    while width < words.len() {
        for start in (0..words.len()).step_by(2 * width) {
            let (middle, end) = ((start + width).min(words.len()), (start + 2 * width).min(words.len()));
            let (mut left, mut right) = (start, middle);
            for place in &mut spare[start..end] {
                let from_left = left < middle && (right >= end || words[left] <= words[right]);
                let source = if from_left { &mut left } else { &mut right };
                *place = opaque(words[*source]);
                *source += 1;
            }
        }
        for (word, copy) in words.iter_mut().zip(spare.iter()) {
            *word = opaque(*copy);
        }
        width *= 2;
    }
}

#[inline(never)]
fn radix(words: &mut [u64], spare: &mut [u64]) {
    for shift in [0, 8] {
        let mut starts = [0_usize; 257];
        words.iter().for_each(|word| starts[(word >> shift & 255) as usize + 1] += 1);
        for digit in 0..256 {
            starts[digit + 1] += opaque(starts[digit] as u64) as usize;
        }
        for word in words.iter() {
            let place = &mut starts[(word >> shift & 255) as usize];
            spare[*place] = opaque(*word);
            *place += 1;
        }
        for (word, sorted) in words.iter_mut().zip(spare.iter()) {
            *word = opaque(*sorted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_sorts() {
        for (name, sort) in [
            ("insertion", insertion as fn(&mut [u64], &mut [u64])),
            ("shell", shell),
            ("quick", quick),
            ("heap", heap),
            ("merge", merge),
        ] {
            let mut rng = Rng::new(1);
            let mut words: Vec<u64> = (0..1000).map(|_| rng.below(500)).collect();
            let mut expected = words.clone();
            expected.sort_unstable();
            sort(&mut words, &mut vec![0; 1000]);
            assert_eq!(words, expected, "{name}");
        }
    }
}
