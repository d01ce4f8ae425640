//! Which branches a processor would have mispredicted.
//!
//! Conditional branches: TAGE (Seznec, Michaud: A case for (partially) tagged geometric history length branch
//! prediction, JILP 2006): two-bit counters by address, and tagged tables by address and ever longer histories, of which
//! the longest that knows the branch decides. Indirect branches: the target by address and history, else the last by
//! address. Returns: a stack of return addresses that forgets its oldest.

use crate::geometry;
use kdyno_model::mixed;

const TABLES: usize = 6;
/// Outcomes that each tagged table looks back on.
const LENGTHS: [u32; TABLES] = [4, 9, 18, 36, 80, 180];
const TAG_BITS: u32 = 11;
/// Which of them index the targets of indirect branches, the longest first.
const TARGETS: [usize; 2] = [3, 1];
/// After so many branches what was useful is doubted.
const RENEWED: u64 = 1 << 18;

#[derive(Clone, Copy, Default)]
struct Entry {
    tag: u16,
    /// -4 to 3; taken from 0 on.
    counter: i8,
    useful: u8,
}

#[derive(Clone, Copy, Default)]
struct Target {
    tag: u16,
    is_sure: bool,
    address: u64,
}

/// Index and tag of a branch in each table.
type Places = [(usize, u16); TABLES];

pub struct Predictor {
    counters: Vec<u8>,
    tables: [Vec<Entry>; TABLES],
    /// log2 of the entries of each table.
    width: u32,
    /// The latest outcome is the lowest bit of the first word.
    history: [u64; 3],
    last_targets: Vec<u64>,
    targets: [Vec<Target>; TARGETS.len()],
    branches: u64,
    returns: Vec<u64>,
    /// Place of the latest return address.
    top: usize,
}

impl Predictor {
    pub fn new(size: &geometry::Predictor) -> Predictor {
        let width = size.table_bits - 3;
        Predictor {
            counters: vec![1; 1 << size.table_bits],
            tables: std::array::from_fn(|_| vec![Entry::default(); 1 << width]),
            width,
            history: [0; 3],
            last_targets: vec![0; 1 << size.btb_bits],
            targets: std::array::from_fn(|_| vec![Target::default(); 1 << (size.btb_bits - 1)]),
            branches: 0,
            returns: vec![0; size.return_stack],
            top: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, outcome: bool) {
        let [new, old, older] = self.history;
        self.history = [new << 1 | u64::from(outcome), old << 1 | new >> 63, older << 1 | old >> 63];
    }

    /// Return where a branch is in a table, and its tag there: address and as many outcomes as the table looks back on,
    /// mixed.
    #[inline(always)]
    fn place(&self, table: usize, address: u64) -> (usize, u16) {
        let length = LENGTHS[table];
        let [new, old, older] = self.history;
        let history = if length <= 64 {
            new << (64 - length)
        } else if length <= 128 {
            mixed(new) ^ old << (128 - length)
        } else {
            mixed(mixed(new) ^ old) ^ older << (192 - length)
        };
        let mixed = mixed(mixed(history) ^ address);
        // An empty entry has the tag 0.
        ((mixed >> (64 - self.width)) as usize, mixed as u16 & ((1 << TAG_BITS) - 1) | 1 << TAG_BITS)
    }

    /// Return whether the outcome of a conditional branch at `address` came unexpected.
    #[inline]
    pub fn conditional(&mut self, address: u64, taken: bool) -> bool {
        let base = (address ^ (address >> 16)) as usize & (self.counters.len() - 1);
        let places: Places = std::array::from_fn(|table| self.place(table, address));
        let mut knowing =
            (0..TABLES).rev().filter(|table| self.tables[*table][places[*table].0].tag == places[*table].1);
        let (first, second) = (knowing.next(), knowing.next());
        let says = |table: Option<usize>| match table {
            Some(table) => self.tables[table][places[table].0].counter >= 0,
            None => self.counters[base] >= 2,
        };
        let (expected, otherwise) = (says(first), says(second));
        match first {
            Some(table) => {
                let entry = &mut self.tables[table][places[table].0];
                entry.counter = (entry.counter + if taken { 1 } else { -1 }).clamp(-4, 3);
                if expected != otherwise {
                    let useful = if expected == taken { entry.useful + 1 } else { entry.useful.saturating_sub(1) };
                    entry.useful = useful.min(3);
                }
            }
            None => {
                let counter = &mut self.counters[base];
                *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
            }
        }
        if expected != taken {
            self.learn(first.map_or(0, |table| table + 1), &places, taken);
        }
        self.branches += 1;
        if self.branches.is_multiple_of(RENEWED) {
            self.tables.iter_mut().flatten().for_each(|entry| entry.useful >>= 1);
        }
        self.push(taken);
        expected != taken
    }

    /// Learn longer histories, from a table on, which decide next time.
    fn learn(&mut self, from: usize, places: &Places, taken: bool) {
        let mut entries_made = 0;
        for (table, (index, tag)) in self.tables.iter_mut().zip(places).skip(from) {
            let entry = &mut table[*index];
            if entry.useful > 0 {
                entry.useful -= 1;
            } else if entries_made < 2 {
                *entry = Entry { tag: *tag, counter: if taken { 0 } else { -1 }, useful: 0 };
                entries_made += 1;
            }
        }
    }

    /// Return whether the target of an indirect branch came unexpected.
    pub fn indirect(&mut self, address: u64, target: u64) -> bool {
        let base = (address ^ (address >> 12)) as usize & (self.last_targets.len() - 1);
        let mask = self.targets[0].len() - 1;
        let places = TARGETS.map(|table| self.place(table, address)).map(|(index, tag)| (index & mask, tag));
        let knowing = (0..TARGETS.len()).find(|table| self.targets[*table][places[*table].0].tag == places[*table].1);
        let expected = knowing.map_or(self.last_targets[base], |table| self.targets[table][places[table].0].address);
        let missed = expected != target;
        if let Some(table) = knowing {
            let entry = &mut self.targets[table][places[table].0];
            if missed && !entry.is_sure {
                entry.address = target;
            }
            entry.is_sure = !missed;
        }
        if missed {
            let shorter = knowing.unwrap_or(TARGETS.len());
            for (targets, (index, tag)) in self.targets.iter_mut().zip(places).take(shorter) {
                let entry = &mut targets[index];
                if entry.is_sure {
                    entry.is_sure = false;
                } else {
                    *entry = Target { tag, is_sure: false, address: target };
                }
            }
        }
        self.last_targets[base] = target;
        // Twice: of targets at equal distances, one turn would leave a pattern that repeats itself too soon.
        let mixed = mixed(mixed(target));
        (0..3).for_each(|bit| self.push(mixed >> bit & 1 == 1));
        missed
    }

    #[inline(always)]
    pub fn call(&mut self, return_address: u64) {
        self.top += 1;
        if self.top == self.returns.len() {
            self.top = 0;
        }
        self.returns[self.top] = return_address;
    }

    /// Return whether a return went elsewhere than behind the latest call.
    #[inline(always)]
    pub fn pop_return(&mut self, target: u64) -> bool {
        let expected = self.returns[self.top];
        self.top = self.top.checked_sub(1).unwrap_or(self.returns.len() - 1);
        expected != target
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;
    use crate::geometry::SMALL;

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
        let unexpected: Vec<bool> = (1..=5).rev().map(|depth| predictor.pop_return(depth)).collect();
        assert_eq!(unexpected, [false, false, false, false, true]);
    }

    #[test]
    fn a_sequence_of_targets_is_learnt() {
        let mut predictor = small();
        let mut missed = |turn: u64| {
            let target = 0x10_0000 + 128 * (turn % 24);
            predictor.conditional(0x3000, turn % 24 == 23);
            predictor.indirect(0x2000, target)
        };
        (0..24 * 50).for_each(|turn| _ = missed(turn));
        let unexpected = (0..24 * 10).filter(|turn| missed(*turn)).count();
        assert!(unexpected < 12, "{unexpected}");
    }

    #[test]
    fn an_indirect_branch_is_expected_to_go_where_it_went() {
        let mut predictor = small();
        let unexpected = (0..100).filter(|_| predictor.indirect(0x1000, 0x2000)).count();
        assert!(unexpected <= 5, "{unexpected}");
    }
}
