//! Properties: whatever the counts, an order has every block once, the entry first, and is worth no less than before.
//! PROPTEST_CASES says how many cases are tried.

use crate::chains::ordered;
use crate::function::Function;
use crate::score::of_order;
use proptest::collection::vec;
use proptest::prelude::*;

fn functions() -> impl Strategy<Value = Function> {
    (1usize..40).prop_flat_map(|blocks| {
        let size = prop_oneof![4 => 0u32..80, 1 => any::<u32>()];
        let count = prop_oneof![4 => 0u64..1000, 1 => any::<u64>()];
        let edge = (0..blocks, 0..blocks, count.clone()).prop_map(Into::into);
        (vec(size, blocks), vec(count, blocks), vec(edge, 0..90)).prop_map(
            |(sizes, counts, edges)| Function {
                sizes,
                counts,
                edges,
            },
        )
    })
}

proptest! {
    #[test]
    fn an_order_is_a_permutation_with_the_entry_first_and_never_worse(function in functions()) {
        prop_assert_eq!(function.check(), Ok(()));
        let order = ordered(&function);
        prop_assert_eq!(order[0], 0);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        let present: Vec<usize> = (0..function.sizes.len()).collect();
        prop_assert!(of_order(&function, &order) >= of_order(&function, &present));
        prop_assert_eq!(sorted, present);
        prop_assert_eq!(ordered(&function), order);
    }

    #[test]
    fn any_line_is_read_or_refused(line in ".*") {
        if let Ok(function) = serde_json::from_str::<Function>(&line) {
            let _ = function.check();
        }
    }
}

#[test]
fn a_very_long_function_takes_seconds() {
    let blocks = 1200;
    let edges = (1..blocks).flat_map(|block| {
        [
            (block - 1, block, 7),
            (block * 7919 % blocks, block, block as u64 % 13),
        ]
    });
    let function = Function {
        sizes: vec![12; blocks],
        counts: vec![1; blocks],
        edges: edges.map(Into::into).collect(),
    };
    assert_eq!(ordered(&function).len(), blocks);
}
