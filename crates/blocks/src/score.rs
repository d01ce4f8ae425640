//! What an order of blocks is worth: the objective ext-TSP of Newell, Pupyrev: Improved Basic Block Reordering (IEEE
//! Transactions on Computers, 2020), section 3.

use crate::function::{Edge, Function};

/// Executing on, without a jump.
const FALL_THROUGH: f64 = 1.0;
/// A jump of no bytes; a longer one is worth less, down to nothing at the distance below.
const JUMP: f64 = 0.1;
const FORWARD_BYTES: f64 = 1024.0;
const BACKWARD_BYTES: f64 = 640.0;

/// Where blocks are while an order is tried.
pub struct Places<'a> {
    function: &'a Function,
    /// Address of each block, by its index.
    starts: Vec<u64>,
}

impl<'a> Places<'a> {
    pub fn of(function: &'a Function) -> Self {
        Self {
            function,
            starts: vec![0; function.sizes.len()],
        }
    }

    /// Return the score of these edges, whose blocks are all in `order`.
    pub fn score<'b>(
        &mut self,
        order: impl IntoIterator<Item = &'b usize>,
        edges: impl IntoIterator<Item = &'b usize>,
    ) -> f64 {
        let mut address = 0;
        for &block in order {
            self.starts[block] = address;
            address += u64::from(self.function.sizes[block]);
        }
        edges
            .into_iter()
            .map(|&edge| self.worth(self.function.edges[edge]))
            .sum()
    }

    fn worth(&self, edge: Edge) -> f64 {
        let from = self.starts[edge.source] + u64::from(self.function.sizes[edge.source]);
        let to = self.starts[edge.target];
        let weight = if from == to && edge.source != edge.target {
            FALL_THROUGH
        } else if from <= to {
            JUMP * (1.0 - (to - from) as f64 / FORWARD_BYTES).max(0.0)
        } else {
            JUMP * (1.0 - (from - to) as f64 / BACKWARD_BYTES).max(0.0)
        };
        weight * edge.count as f64
    }
}

/// Return the score of a whole function in this order.
pub fn of_order(function: &Function, order: &[usize]) -> f64 {
    let edges: Vec<usize> = (0..function.edges.len()).collect();
    Places::of(function).score(order, &edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falling_through_is_worth_all_and_a_jump_the_less_the_longer_it_is() {
        let edges = vec![(0, 1, 10).into(), (1, 0, 10).into()];
        let function = Function {
            sizes: vec![100, 60, 924],
            counts: vec![10, 10, 0],
            edges,
        };
        let forward = 10.0 * FALL_THROUGH;
        assert_eq!(
            of_order(&function, &[0, 1, 2]),
            forward + 10.0 * JUMP * (1.0 - 160.0 / 640.0)
        );
        // Behind block 2 block 1 is 924 bytes away; the way back is too long to be worth anything.
        assert!((of_order(&function, &[0, 2, 1]) - 10.0 * JUMP * (100.0 / 1024.0)).abs() < 1e-9);
    }

    #[test]
    fn a_block_that_jumps_to_itself_does_not_fall_through() {
        let function = Function {
            sizes: vec![0],
            counts: vec![1],
            edges: vec![(0, 0, 10).into()],
        };
        assert_eq!(of_order(&function, &[0]), 10.0 * JUMP);
    }
}
