//! A fixed sequence of numbers that look random: the same load in every boot, but no two rounds alike.

/// SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
pub struct Mix(u64);

impl Mix {
    pub fn new(seed: u64) -> Mix {
        Mix(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// 0 to `end` - 1; `end` is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// 1 to `most`, with as many of a few as of many digits: `most` is a power of two.
    pub fn size(&mut self, most: usize) -> usize {
        let bits = self.below(most.ilog2() as usize + 1);
        1 + self.below(1 << bits)
    }

    /// The items in another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_published_generator() {
        // The first values for seed 1234567, as published with the reference implementation.
        let mut mix = Mix::new(1_234_567);
        assert_eq!([mix.next(), mix.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn sizes_are_of_every_magnitude_and_a_shuffle_keeps_all() {
        let mut mix = Mix::new(1);
        let sizes: Vec<_> = (0..1000).map(|_| mix.size(4096)).collect();
        assert!(sizes.iter().all(|size| (1..=4096).contains(size)));
        assert!(sizes.iter().filter(|&&size| size < 64).count() > 300);
        assert!(sizes.iter().filter(|&&size| size > 512).count() > 100);
        let mut items: Vec<_> = (0..50).collect();
        mix.shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
