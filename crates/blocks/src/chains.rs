//! Ordering blocks: chains of blocks are merged, the most profitable pair first, as in section 4 of Newell, Pupyrev.

use std::collections::BTreeMap;

use crate::function::Function;
use crate::score::{Places, of_order};

const ENTRY: usize = 0;
/// A longer chain is not cut to put another one into it: that takes time with the square of its length.
const LONGEST_CUT: usize = 128;
/// Neither are two that are longer than this together.
const LONGEST_WITH_CUTS: usize = 1000;
/// Less is rounding, and no gain.
const LEAST_GAIN: f64 = 1e-6;

/// Blocks that stay together.
struct Chain {
    blocks: Vec<usize>,
    /// Edges from a block of it to a block of it.
    inner: Vec<usize>,
    score: f64,
}

/// A pair of chains made one, and what that gains.
struct Merged {
    blocks: Vec<usize>,
    gain: f64,
}

/// Return the order of a function's blocks, entry first; never worth less than the one that they have.
pub fn ordered(function: &Function) -> Vec<usize> {
    let present: Vec<usize> = (0..function.sizes.len()).collect();
    let merged = Chains::of(function).merged();
    if of_order(function, &merged) > of_order(function, &present) {
        merged
    } else {
        present
    }
}

/// All chains of a function; a pair of them is (lower index, higher index).
struct Chains<'a> {
    function: &'a Function,
    places: Places<'a>,
    chains: Vec<Option<Chain>>,
    /// Edges between two chains.
    between: BTreeMap<(usize, usize), Vec<usize>>,
    /// The best way to merge a pair, where there is a gain.
    ways: BTreeMap<(usize, usize), Merged>,
}

impl<'a> Chains<'a> {
    /// Return chains of one block each.
    fn of(function: &'a Function) -> Self {
        let mut places = Places::of(function);
        let mut between: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        let mut inner = vec![vec![]; function.sizes.len()];
        for (index, edge) in function.edges.iter().enumerate() {
            if edge.source == edge.target {
                inner[edge.source].push(index);
            } else {
                between
                    .entry(pair(edge.source, edge.target))
                    .or_default()
                    .push(index);
            }
        }
        let alone = inner.into_iter().enumerate().map(|(block, inner)| {
            let score = places.score(&[block], &inner);
            Some(Chain {
                blocks: vec![block],
                inner,
                score,
            })
        });
        let chains = alone.collect();
        Self {
            function,
            places,
            chains,
            between,
            ways: BTreeMap::new(),
        }
    }

    fn merged(mut self) -> Vec<usize> {
        for key in self.between.keys().copied().collect::<Vec<_>>() {
            self.weigh(key);
        }
        while let Some(key) = self.best() {
            self.merge(key);
        }
        let mut left: Vec<Chain> = self.chains.into_iter().flatten().collect();
        // The entry's chain has the lowest index, since merging keeps the lower one. The rest by density.
        left[1..].sort_by(|one, other| {
            self.function
                .density(&other.blocks)
                .total_cmp(&self.function.density(&one.blocks))
        });
        left.into_iter().flat_map(|chain| chain.blocks).collect()
    }

    /// Return the pair that gains most; of equal ones the first.
    fn best(&self) -> Option<(usize, usize)> {
        let in_turn = self.ways.iter().rev(); // max_by gives the last of equal ones
        in_turn
            .max_by(|one, other| one.1.gain.total_cmp(&other.1.gain))
            .map(|(&key, _)| key)
    }

    fn merge(&mut self, key: (usize, usize)) {
        let (kept, gone) = key;
        let (Some(way), Some(absorbed), Some(chain)) = (
            self.ways.remove(&key),
            self.chains[gone].take(),
            self.chains[kept].as_mut(),
        ) else {
            return;
        };
        chain.blocks = way.blocks;
        chain.score += absorbed.score + way.gain;
        chain.inner.extend(absorbed.inner);
        chain
            .inner
            .extend(self.between.remove(&key).unwrap_or_default());
        let touched: Vec<_> = self
            .between
            .keys()
            .copied()
            .filter(|&(low, high)| low == gone || high == gone)
            .collect();
        for old in touched {
            let edges = self.between.remove(&old).unwrap_or_default();
            self.ways.remove(&old);
            let other = if old.0 == gone { old.1 } else { old.0 };
            self.between
                .entry(pair(kept, other))
                .or_default()
                .extend(edges);
        }
        let near: Vec<_> = self
            .between
            .keys()
            .copied()
            .filter(|&(low, high)| low == kept || high == kept)
            .collect();
        for pair in near {
            self.weigh(pair);
        }
    }

    /// Find the best way to merge a pair.
    fn weigh(&mut self, key: (usize, usize)) {
        self.ways.remove(&key);
        let (Some(low), Some(high)) = (&self.chains[key.0], &self.chains[key.1]) else {
            return;
        };
        let edges: Vec<usize> = low
            .inner
            .iter()
            .chain(&high.inner)
            .chain(&self.between[&key])
            .copied()
            .collect();
        let mut best = Merged {
            blocks: vec![],
            gain: LEAST_GAIN,
        };
        for (one, other) in [(&low.blocks, &high.blocks), (&high.blocks, &low.blocks)] {
            for parts in arrangements(one, other) {
                let first = parts.iter().find_map(|part| part.first());
                if key.0 == ENTRY && first != Some(&ENTRY) {
                    continue;
                }
                let score = self.places.score(parts.iter().copied().flatten(), &edges);
                let gain = score - low.score - high.score;
                if gain > best.gain {
                    best = Merged {
                        blocks: parts.concat(),
                        gain,
                    };
                }
            }
        }
        if !best.blocks.is_empty() {
            self.ways.insert(key, best);
        }
    }
}

/// Return the orders that two chains may be merged in: one behind the other, or the second into a cut of the first.
fn arrangements<'a>(
    one: &'a [usize],
    other: &'a [usize],
) -> impl Iterator<Item = [&'a [usize]; 3]> {
    let may_cut = one.len() <= LONGEST_CUT && one.len() + other.len() <= LONGEST_WITH_CUTS;
    let cuts = if may_cut { 1..one.len() } else { 1..1 };
    let whole: [&[usize]; 3] = [one, other, &[]];
    std::iter::once(whole).chain(cuts.flat_map(move |cut| {
        let (head, tail) = one.split_at(cut);
        [
            [head, other, tail],
            [other, tail, head],
            [tail, head, other],
        ]
    }))
}

fn pair(one: usize, other: usize) -> (usize, usize) {
    (one.min(other), one.max(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(sizes: &[u32], edges: &[(usize, usize, u64)]) -> Function {
        let mut counts = vec![0; sizes.len()];
        edges
            .iter()
            .for_each(|&(_, target, count)| counts[target] += count);
        Function {
            sizes: sizes.to_vec(),
            counts,
            edges: edges.iter().map(|&edge| edge.into()).collect(),
        }
    }

    #[test]
    fn the_likely_way_falls_through() {
        // 0 goes to 1 rarely, to 2 mostly; both go on to 3.
        let branch = function(&[16; 4], &[(0, 1, 1), (0, 2, 99), (1, 3, 1), (2, 3, 99)]);
        assert_eq!(ordered(&branch), [0, 2, 3, 1]);
    }

    #[test]
    fn a_loop_with_its_test_at_the_top_is_turned() {
        // 0 -> 1 (test) -> 2 (body) -> 1, and 1 -> 3 at the end: body before test saves the jump back.
        let turned = ordered(&function(
            &[16; 4],
            &[(0, 1, 1), (1, 2, 100), (2, 1, 100), (1, 3, 1)],
        ));
        assert_eq!(turned[0], 0);
        let place = |block| turned.iter().position(|&other| other == block).unwrap();
        assert!(
            place(1) + 1 == place(2) || place(2) + 1 == place(1),
            "{turned:?}"
        );
    }

    #[test]
    fn the_best_of_small_functions_is_found() {
        // All orders of six blocks, entry first, tried; the greedy way is within 2 % of the best here.
        let edges = [
            (0, 1, 30),
            (0, 2, 70),
            (1, 3, 30),
            (2, 3, 60),
            (2, 5, 10),
            (3, 4, 90),
            (4, 0, 40),
            (4, 5, 50),
        ];
        let small = function(&[10, 40, 20, 200, 30, 15], &edges);
        let best = permutations(&[1, 2, 3, 4, 5]).into_iter().map(|mut rest| {
            rest.insert(0, 0);
            of_order(&small, &rest)
        });
        let best = best.fold(0.0, f64::max);
        assert!(of_order(&small, &ordered(&small)) >= 0.98 * best);
    }

    fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
        if items.is_empty() {
            return vec![vec![]];
        }
        let orders = items.iter().enumerate().flat_map(|(index, &first)| {
            let rest: Vec<usize> = [&items[..index], &items[index + 1..]].concat();
            permutations(&rest)
                .into_iter()
                .map(move |tail| [vec![first], tail].concat())
        });
        orders.collect()
    }

    #[test]
    fn chains_that_nothing_joins_go_behind_the_entry_by_density() {
        let mut apart = function(&[16, 16, 16], &[]);
        apart.counts = vec![5, 1, 9];
        // No edge, nothing to win: the order stays.
        assert_eq!(ordered(&apart), [0, 1, 2]);
        apart.edges = vec![(0, 0, 5).into()];
        assert_eq!(Chains::of(&apart).merged(), [0, 2, 1]);
    }
}
