//! Data that is known from its place alone: what is in an array can be computed again to verify it.

/// The output function of SplitMix64 (Steele, Lea, Flood 2014): a number of 64 bits for each index.
pub fn scramble(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// From -1 up to, but not including, 1.
pub fn fraction(index: u64) -> f64 {
    (scramble(index) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// A whole number from -`most` to `most`.
pub fn whole(index: u64, most: u64) -> f64 {
    (scramble(index) % (2 * most + 1)) as f64 - most as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64_with_the_seed_0() {
        assert_eq!([scramble(0), scramble(1)], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn fractions_and_whole_numbers_keep_to_their_range() {
        assert!((0..1000).all(|index| (-1.0..1.0).contains(&fraction(index))));
        let mut numbers: Vec<i64> = (0..1000).map(|index| whole(index, 3) as i64).collect();
        numbers.sort();
        numbers.dedup();
        assert_eq!(numbers, [-3, -2, -1, 0, 1, 2, 3]);
    }
}
