//! Random numbers that a seed decides.

use kdyno_tool::random::SplitMix64;

pub struct Rng(SplitMix64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(SplitMix64::new(seed))
    }

    /// Return a number from 0 to less than `most`, which is not 0.
    pub fn below(&mut self, most: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(most)) >> 64) as u64
    }

    /// Return a fraction from 0 to less than 1.
    pub fn fraction(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        // A layout is found again by its seed.
        let mut rng = Rng::new(1_234_567);
        assert_eq!((rng.below(1000), rng.below(7), rng.fraction()), (350, 1, 0.5322073040624192));
    }
}
