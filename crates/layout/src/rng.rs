//! Random numbers that a seed decides: SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
//! OOPSLA 2014).

pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than a number that is not 0.
    pub fn below(&mut self, most: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(most)) >> 64) as u64
    }

    /// From 0 to less than 1.
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
