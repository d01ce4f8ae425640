//! Which branches a processor would have mispredicted.
//!
//! Conditional branches: two-bit counters, indexed by address xor the outcomes before (gshare; McFarling, WRL TN-36,
//! 1993). Indirect branches: the last target, by address xor history. Returns: a stack of return addresses that forgets
//! its oldest. Real predictors are better at long patterns and keep quiet about how; this one is stated.

use crate::geometry;

pub struct Predictor {
    history: u64,
    history_mask: u64,
    counters: Vec<u8>,
    targets: Vec<u64>,
    returns: Vec<u64>,
    /// Place of the latest return address.
    top: usize,
}

impl Predictor {
    pub fn new(size: &geometry::Predictor) -> Predictor {
        Predictor {
            history: 0,
            history_mask: (1 << size.history_bits) - 1,
            counters: vec![1; 1 << size.table_bits],
            targets: vec![0; 1 << size.btb_bits],
            returns: vec![0; size.return_stack],
            top: 0,
        }
    }

    /// Whether the outcome of a conditional branch at `address` came unexpected.
    #[inline(always)]
    pub fn conditional(&mut self, address: u64, taken: bool) -> bool {
        let place = (address ^ (address >> 16) ^ self.history) as usize & (self.counters.len() - 1);
        let counter = &mut self.counters[place];
        let expected = *counter >= 2;
        *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
        self.history = (self.history << 1 | u64::from(taken)) & self.history_mask;
        expected != taken
    }

    /// Whether the target of an indirect branch came unexpected.
    pub fn indirect(&mut self, address: u64, target: u64) -> bool {
        let place = (address ^ self.history) as usize & (self.targets.len() - 1);
        let expected = std::mem::replace(&mut self.targets[place], target);
        self.history = (self.history << 2 ^ (target >> 2)) & self.history_mask;
        expected != target
    }

    #[inline(always)]
    pub fn call(&mut self, return_address: u64) {
        self.top += 1;
        if self.top == self.returns.len() {
            self.top = 0;
        }
        self.returns[self.top] = return_address;
    }

    /// Whether a return went elsewhere than behind the latest call.
    #[inline(always)]
    pub fn returned(&mut self, target: u64) -> bool {
        let expected = self.returns[self.top];
        self.top = self.top.checked_sub(1).unwrap_or(self.returns.len() - 1);
        expected != target
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;
    use crate::geometry::tests::SMALL;

    fn small() -> Predictor {
        Predictor::new(&Geometry::parse(SMALL).unwrap().predictor)
    }

    fn misses(outcomes: impl Iterator<Item = bool>) -> usize {
        let mut predictor = small();
        outcomes.filter(|taken| predictor.conditional(0x1000, *taken)).count()
    }

    #[test]
    fn a_pattern_is_learnt_and_chance_is_not() {
        assert!(misses((0..1000).map(|_| true)) < 20);
        assert!(misses((0..1000).map(|i| i % 3 == 0)) < 60);
        let mut state = 1_u32;
        let mut coin = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 31 == 1
        };
        let random = misses((0..4000).map(|_| coin()));
        assert!((1400..2600).contains(&random), "{random}");
    }

    #[test]
    fn returns_are_expected_as_deep_as_the_stack_is() {
        let mut predictor = small();
        for depth in 1..=5 {
            predictor.call(depth);
        }
        let unexpected: Vec<bool> = (1..=5).rev().map(|depth| predictor.returned(depth)).collect();
        assert_eq!(unexpected, [false, false, false, false, true]);
    }

    #[test]
    fn an_indirect_branch_is_expected_to_go_where_it_went() {
        let mut predictor = small();
        let unexpected = (0..100).filter(|_| predictor.indirect(0x1000, 0x2000)).count();
        assert!(unexpected <= 5, "{unexpected}");
    }
}
