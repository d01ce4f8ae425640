//! A fixed sequence of numbers that look random: the same load in every boot, but no two rounds alike.

use kdyno_tool::random::SplitMix64;

pub struct Mix(SplitMix64);

impl Mix {
    pub fn new(seed: u64) -> Mix {
        Mix(SplitMix64::new(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Return a number from 0 to `end` - 1; `end` is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Return a number from 1 to `most`, which is a power of two: numbers of few digits are as frequent as those of
    /// many.
    pub fn size(&mut self, most: usize) -> usize {
        let bits = self.below(most.ilog2() as usize + 1);
        1 + self.below(1 << bits)
    }

    /// Put the items in another order.
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
    fn a_seed_gives_the_same_load_for_ever() {
        let mut mix = Mix::new(1);
        let mut items = [0, 1, 2, 3];
        let numbers = (mix.below(1000), mix.size(4096));
        mix.shuffle(&mut items);
        assert_eq!((numbers, items), ((465, 31), [1, 2, 0, 3]));
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
