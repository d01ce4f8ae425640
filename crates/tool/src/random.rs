//! Random numbers that a seed decides: SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
//! OOPSLA 2014). The same sequence for ever: loads, layouts and the results of both depend on it.

/// The increment of the state from one number to the next.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

pub struct SplitMix64(u64);

impl SplitMix64 {
    #[inline]
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }
}

/// Return the number at a place, from 0, of the sequence of seed 0.
#[inline]
pub fn nth(place: u64) -> u64 {
    mixed(place.wrapping_add(1).wrapping_mul(STEP))
}

#[inline]
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_published_generator() {
        // The first values for seed 1234567, as published with the reference implementation.
        let mut numbers = SplitMix64::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([numbers.next_u64(), numbers.next_u64(), numbers.next_u64()], expected);
    }

    #[test]
    fn a_number_can_be_had_by_its_place() {
        assert_eq!([nth(0), nth(1)], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        let mut numbers = SplitMix64::new(0);
        assert!((0..1000).all(|place| nth(place) == numbers.next_u64()));
        assert_eq!(nth(u64::MAX), SplitMix64::new(0_u64.wrapping_sub(STEP)).next_u64());
    }
}
