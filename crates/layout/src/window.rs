//! The part of a trace that a search replays: a benchmark's loop does the same again and again, and a few turns say all.

use crate::replay::Step;

/// Steps of a window, at least and at most.
const FEWEST: usize = 1500;
const MOST: usize = 6000;
/// So many of a hundred steps are the same one turn later.
const ALIKE: usize = 93;

/// Return whole turns of a loop from the middle of a trace, or, if there is no loop, as many steps as a window has at
/// most.
pub fn window(steps: &[Step]) -> &[Step] {
    let from = steps.len() / 4;
    let rest = &steps[from..];
    if rest.len() <= FEWEST {
        return &steps[steps.len().saturating_sub(FEWEST)..];
    }
    match turn(rest) {
        Some(turn) => &rest[..(turn * FEWEST.div_ceil(turn)).min(rest.len())],
        None => &rest[..rest.len().min(MOST)],
    }
}

/// Return the length of a turn: the first distance at which the same steps come again.
fn turn(steps: &[Step]) -> Option<usize> {
    (1..=MOST.min(steps.len() / 2)).find(|distance| {
        let (first, second) = (&steps[..*distance], &steps[*distance..2 * distance]);
        // Most distances fail here.
        first[0] == second[0] && {
            let alike = first.iter().zip(second).filter(|(step, other)| step == other).count();
            100 * alike >= ALIKE * distance && *distance >= SHORTEST
        }
    })
}

/// Shorter loops are inside of what a benchmark does.
const SHORTEST: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Way;

    fn steps(numbers: impl Iterator<Item = u32>) -> Vec<Step> {
        numbers.map(|block| Step { block, way: Way::Through, is_taken: false }).collect()
    }

    #[test]
    fn a_loop_is_cut_to_whole_turns() {
        let of_100 = steps((0..20_000).map(|step| step % 100));
        assert_eq!(window(&of_100).len(), 1500);
        let of_700 = steps((0..20_000).map(|step| step % 700));
        assert_eq!(window(&of_700).len(), 2100);
    }

    #[test]
    fn what_is_no_loop_is_cut_to_the_most() {
        assert_eq!(window(&steps(0..20_000)).len(), MOST);
        assert_eq!(window(&steps(0..3000)).len(), 2250);
        assert_eq!(window(&steps(0..100)).len(), 100);
    }
}
