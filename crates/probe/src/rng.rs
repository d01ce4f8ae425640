//! Pseudo-random numbers: the same on every machine and in every run.

pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Return the next number of Marsaglia's xorshift64: six simple instructions, so that the random part doesn't
    /// outweigh the program.
    #[inline(always)]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Return a number from 0 to `limit` - 1; `limit` is at most 2^32.
    #[inline(always)]
    pub fn below(&mut self, limit: u64) -> u64 {
        ((self.next() >> 32) * limit) >> 32
    }

    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for i in (1..values.len()).rev() {
            values.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// Return 0 to `count` - 1 in random order.
pub fn permutation(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    Rng::new(seed).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_limit_and_reach_every_value() {
        let mut rng = Rng::new(1);
        let mut reached = [false; 7];
        (0..1000).for_each(|_| reached[rng.below(7) as usize] = true);
        assert_eq!(reached, [true; 7]);
    }

    #[test]
    fn a_permutation_has_every_number_once() {
        let mut order = permutation(100, 3);
        assert_ne!(order, (0..100).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }
}
