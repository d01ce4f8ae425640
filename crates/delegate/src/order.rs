//! The order of functions and their alignment, drawn from a seed.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// One function section and what it is aligned to at least, in bytes; `None`: what the compiler asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed<'a> {
    pub name: &'a str,
    pub align: Option<u32>,
}

/// Of four functions two stay as the compiler aligns them (16 bytes), one starts at 32 and one at 64 bytes.
const ALIGNMENTS: [Option<u32>; 4] = [None, None, Some(32), Some(64)];

/// Return every section once, in the order of the seed.
pub fn shuffled<'a>(names: impl IntoIterator<Item = &'a String>, seed: u64) -> Vec<Placed<'a>> {
    let mut drawn: Vec<(u64, &str)> = names.into_iter().map(|name| (place(name, seed).0, name.as_str())).collect();
    drawn.sort_unstable();
    drawn.dedup();
    drawn.into_iter().map(|(_, name)| Placed { name, align: place(name, seed).1 }).collect()
}

/// Return a section's rank, by which it is sorted (and by name where ranks are equal), and its alignment.
///
/// They depend on the seed and on the name, and on nothing else: the passes of one link agree although the last has
/// more inputs, and a function that a change adds doesn't reshuffle all the others.
pub fn place(name: &str, seed: u64) -> (u64, Option<u32>) {
    (draw(name, seed, 0), ALIGNMENTS[(draw(name, seed, 1) >> 62) as usize])
}

/// Return 64 bits that look random: SipHash-1-3 of the name under the seed; `which` distinguishes the draws for one
/// name.
fn draw(name: &str, seed: u64, which: u64) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(seed, which);
    hasher.write(name.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!(".text.f{number}")).collect()
    }

    fn order(names: &[String], seed: u64) -> Vec<&str> {
        shuffled(names, seed).into_iter().map(|placed| placed.name).collect()
    }

    #[test]
    fn no_function_is_lost_and_none_comes_twice() {
        let mut twice = names(1000);
        twice.extend(names(1000));
        let mut sorted = order(&twice, 7);
        sorted.sort_unstable();
        let names = names(1000);
        let mut expected: Vec<&str> = names.iter().map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn the_same_seed_gives_the_same_order_and_another_seed_another() {
        let names = names(1000);
        assert_eq!(shuffled(&names, 7), shuffled(&names, 7));
        let (one, two) = (order(&names, 7), order(&names, 8));
        let stayed = one.iter().zip(&two).filter(|(a, b)| a == b).count();
        assert!(stayed < 10, "{stayed} of 1000 in the same place");
    }

    #[test]
    fn the_order_is_written_down_so_that_a_change_of_it_is_seen() {
        assert_eq!(order(&names(5), 1), [".text.f2", ".text.f0", ".text.f3", ".text.f4", ".text.f1"]);
    }

    #[test]
    fn one_more_function_leaves_the_order_of_the_others() {
        let all = names(100);
        let without: Vec<&str> = order(&all, 3).into_iter().filter(|name| *name != ".text.f50").collect();
        let fewer: Vec<String> = all.iter().filter(|name| *name != ".text.f50").cloned().collect();
        assert_eq!(order(&fewer, 3), without);
    }

    #[test]
    fn half_of_the_functions_keep_the_compilers_alignment() {
        let names = names(4000);
        let placed = shuffled(&names, 5);
        let count = |align| placed.iter().filter(|placed| placed.align == align).count();
        assert!(count(None).abs_diff(2000) < 120);
        assert!(count(Some(32)).abs_diff(1000) < 120);
        assert!(count(Some(64)).abs_diff(1000) < 120);
    }
}
