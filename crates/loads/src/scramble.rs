//! Data that is known from its place alone: what is in an array can be computed again to verify it.

pub use kdyno_tool::random::nth as scramble;

/// Return a number from -1 up to, but not including, 1.
pub fn fraction(index: u64) -> f64 {
    (scramble(index) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Return a whole number from -`most` to `most`.
pub fn whole(index: u64, most: u64) -> f64 {
    (scramble(index) % (2 * most + 1)) as f64 - most as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_gives_the_same_numbers_for_ever() {
        assert_eq!(
            (fraction(0), fraction(1), whole(0, 3), whole(1, 3)),
            (0.7666216164272852, -0.13694400590298006, -1.0, -2.0)
        );
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
