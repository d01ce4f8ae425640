//! The number of operations of an iteration where it isn't fixed: as many as last long enough.

use crate::sys::Stop;

/// How long one iteration should last where time passes, in nanoseconds: the clock's own cost and resolution are then
/// less than 1 in 10^4, and a suite of 40 benchmarks still takes seconds.
pub const NANOSECONDS: u64 = 5_000_000;

/// How long one iteration should last where cycles are counted: the same at 3 GHz.
pub const CYCLES: u64 = 15_000_000;

/// An iteration may last so many times the target.
const LEAST: f64 = 0.95;
const MOST: f64 = 1.2;

/// An iteration never does more operations than this.
const MOST_OPERATIONS: u64 = 1 << 24;

/// On a host that is too restless the last try has to do.
const TRIES: u32 = 40;

/// Find the number of operations with which `once`, which returns what it took and the work, lasts 0.95 to 1.2 times
/// `target`, and warm up by doing so. Two tries in a row must agree: a single one may be an outlier. Where one
/// operation is a large part of the target, it is the smallest number that lasts long enough.
pub fn calibrate(target: u64, once: &mut impl FnMut(u64) -> Result<(u64, u64), Stop>) -> Result<u64, Stop> {
    let mut operations = 1;
    let mut was_good = false;
    for _ in 0..TRIES {
        let (elapsed, _) = once(operations)?;
        let better = better(target, operations, elapsed);
        let ratio = elapsed as f64 / target as f64;
        let is_good = (LEAST..=MOST).contains(&ratio) || better == operations;
        if is_good && was_good {
            break;
        }
        was_good = is_good;
        if !is_good {
            operations = better;
        }
    }
    Ok(operations)
}

/// Return the smallest number of operations that lasts long enough, if so many took that long. The first tries are cold
/// and say little, so no step is larger than ten times.
fn better(target: u64, operations: u64, elapsed: u64) -> u64 {
    let least = (u128::from(operations) * u128::from(target)).div_ceil(u128::from(elapsed.max(1)));
    u64::try_from(least).unwrap_or(u64::MAX).clamp(1, operations * 10).min(MOST_OPERATIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calibrate against a clock that returns `elapsed(try, operations)`; return the operations, and the tries.
    fn calibrated(elapsed: impl Fn(u32, u64) -> u64) -> (u64, u32) {
        let mut tries = 0;
        let operations = calibrate(NANOSECONDS, &mut |operations| {
            tries += 1;
            Ok((elapsed(tries, operations), operations))
        })
        .unwrap();
        (operations, tries)
    }

    #[test]
    fn it_ends_when_an_iteration_lasts_as_long_as_it_should() {
        let (operations, tries) = calibrated(|_, operations| operations * 1_000);
        assert_eq!(operations, 5_000);
        assert!(tries <= 7, "{tries}");
    }

    #[test]
    fn an_outlier_decides_nothing_however_long_it_is() {
        for outlier in [2_000_000, 5_100_000, 900_000_000] {
            for when in 1..=8 {
                let (operations, _) = calibrated(|r#try, operations| match r#try == when {
                    true => outlier,
                    false => operations * 1_000,
                });
                assert!((4_750..=6_000).contains(&operations), "{outlier} at {when}: {operations}");
            }
        }
    }

    #[test]
    fn cold_tries_are_not_believed() {
        let (operations, _) = calibrated(|r#try, operations| operations * if r#try < 3 { 50_000 } else { 1_000 });
        assert!((4_750..=6_000).contains(&operations), "{operations}");
    }

    #[test]
    fn a_dear_operation_is_done_once_and_one_of_a_third_of_the_target_as_often_as_it_takes() {
        assert_eq!(calibrated(|_, operations| operations * 80_000_000), (1, 2));
        assert_eq!(calibrated(|_, operations| operations * 1_550_000).0, 4);
    }

    #[test]
    fn a_clock_that_stands_still_or_a_host_without_rest_ends_it_all_the_same() {
        assert_eq!(calibrated(|_, _| 0).0, MOST_OPERATIONS);
        let (_, tries) = calibrated(|r#try, operations| operations * if r#try % 2 == 0 { 1_000 } else { 3_000 });
        assert_eq!(tries, TRIES);
    }

    #[test]
    fn a_failure_is_passed_on() {
        let stop = Stop::Broken("no".into());
        assert_eq!(calibrate(NANOSECONDS, &mut |_| Err(stop.clone())), Err(stop));
    }
}
