//! Warm-up in the model lane: until the cost of an iteration no longer drifts.

use crate::sys::Stop;

/// Three iterations in a row that agree to this part are stationary.
const TOLERANCE: f64 = 0.005;

/// Warm-ups at most: what goes in cycles, as lists of free pages do, is never stationary, and need not be.
const MOST: usize = 12;

/// Instructions after which warming up ends in any case, but not before the third iteration.
const MOST_SPENT: u64 = 2_500_000;
const LEAST: usize = 3;

/// Call `once`, which returns elapsed instructions and work, until it is stationary or the bound is reached.
pub fn warm_up(once: &mut impl FnMut() -> Result<(u64, u64), Stop>) -> Result<(), Stop> {
    let mut costs = Vec::with_capacity(MOST);
    let mut spent = 0_u64;
    while costs.len() < MOST {
        let (elapsed, work) = once()?;
        costs.push(elapsed as f64 / work.max(1) as f64);
        spent = spent.saturating_add(elapsed);
        if is_stationary(&costs) || costs.len() >= LEAST && spent >= MOST_SPENT {
            break;
        }
    }
    Ok(())
}

fn is_stationary(costs: &[f64]) -> bool {
    let Some(three) = costs.last_chunk::<3>() else { return false };
    let (least, most) =
        three.iter().fold((f64::MAX, 0.0_f64), |(least, most), &cost| (least.min(cost), most.max(cost)));
    most - least <= TOLERANCE * least
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Return how many of these iterations are spent on warming up; the last cost repeats.
    fn warm_ups(costs: &[u64]) -> usize {
        let mut calls = 0;
        warm_up(&mut || {
            calls += 1;
            Ok((costs[(calls - 1).min(costs.len() - 1)], 1))
        })
        .unwrap();
        calls
    }

    #[test]
    fn three_will_do_where_nothing_changes_and_a_cold_one_is_not_one_of_them() {
        assert_eq!(warm_ups(&[1_000]), 3);
        assert_eq!(warm_ups(&[1_000, 1_004, 1_002]), 3);
        assert_eq!(warm_ups(&[1_300, 1_000]), 4);
    }

    #[test]
    fn a_window_that_grows_is_waited_for() {
        assert_eq!(warm_ups(&[1_300, 1_250, 1_200, 1_150, 1_100, 1_050, 1_000]), 9);
    }

    #[test]
    fn what_drifts_for_ever_is_given_up() {
        let drifting: Vec<u64> = (0..100).map(|i| 1_000 + 10 * i).collect();
        assert_eq!(warm_ups(&drifting), MOST);
        let dear: Vec<u64> = (0..100).map(|i| 1_000_000 + 10_000 * i).collect();
        assert_eq!(warm_ups(&dear), LEAST);
    }

    #[test]
    fn a_failure_ends_it() {
        let stop = Stop::Broken("no".into());
        assert_eq!(warm_up(&mut || Err(stop.clone())), Err(stop));
    }
}
