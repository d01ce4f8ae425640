//! Which snapshots go, so that the disk that they take is bounded.

use crate::store::SnapshotFile;
use std::collections::BTreeMap;

/// Counters only grow, so that the last snapshot of a run has all that the run's others have.
pub struct Choice<'a> {
    /// Nothing is lost with these.
    pub superseded: Vec<&'a SnapshotFile>,
    /// With these all that their run had counted is lost.
    pub runs: Vec<&'a SnapshotFile>,
}

/// Choose what to remove in order to keep up to `keep` snapshots of a run, and up to `max_bytes` of all: superseded
/// ones first, then whole runs, the oldest first. The newest snapshot of all stays.
pub fn choose(snapshots: &[SnapshotFile], keep: usize, max_bytes: u64) -> Choice<'_> {
    let mut runs: BTreeMap<(&str, u32), Vec<&SnapshotFile>> = BTreeMap::new();
    for snapshot in snapshots {
        runs.entry((&snapshot.boot, snapshot.run)).or_default().push(snapshot);
    }
    let (mut superseded, mut spare, mut last) = (Vec::new(), Vec::new(), Vec::new());
    for mut run in runs.into_values() {
        run.sort_by_key(|snapshot| snapshot.sequence);
        let newest = run.split_off(run.len().saturating_sub(keep));
        superseded.extend(run);
        spare.extend(&newest[..newest.len() - 1]);
        last.extend(newest.last());
    }
    let age = |snapshot: &&SnapshotFile| (snapshot.time, snapshot.sequence);
    spare.sort_by_key(age);
    last.sort_by_key(age);
    last.pop();
    let mut bytes: u64 = snapshots.iter().map(|snapshot| snapshot.size).sum();
    bytes -= superseded.iter().map(|snapshot| snapshot.size).sum::<u64>();
    let mut goes = |snapshot: &&SnapshotFile| {
        let is_too_much = bytes > max_bytes;
        bytes -= if is_too_much { snapshot.size } else { 0 };
        is_too_much
    };
    superseded.extend(spare.into_iter().take_while(&mut goes));
    let runs = last.into_iter().take_while(&mut goes).collect();
    Choice { superseded, runs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, SystemTime};

    fn snapshot(boot: &str, run: u32, sequence: u64, size: u64, minute: u64) -> SnapshotFile {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(60 * minute);
        SnapshotFile { boot: boot.into(), run, sequence, size, time }
    }

    fn numbers(snapshots: &[&SnapshotFile]) -> Vec<(u32, u64)> {
        snapshots.iter().map(|snapshot| (snapshot.run, snapshot.sequence)).collect()
    }

    #[test]
    fn a_run_keeps_its_last_snapshots() {
        let snapshots: Vec<_> =
            (1..=5).map(|n| snapshot("a", 1, n, 10, n)).chain([snapshot("a", 2, 6, 10, 6)]).collect();
        let choice = choose(&snapshots, 2, 1000);
        assert_eq!((numbers(&choice.superseded), numbers(&choice.runs)), (vec![(1, 1), (1, 2), (1, 3)], vec![]));
    }

    #[test]
    fn what_others_supersede_goes_before_whole_runs_and_the_oldest_first() {
        let snapshots = [
            snapshot("b", 1, 1, 10, 5),
            snapshot("b", 1, 2, 10, 6),
            snapshot("a", 7, 1, 10, 1),
            snapshot("a", 8, 2, 10, 2),
        ];
        let fits = |bytes| {
            let choice = choose(&snapshots, 9, bytes);
            (numbers(&choice.superseded), numbers(&choice.runs))
        };
        assert_eq!(fits(40), (vec![], vec![]));
        assert_eq!(fits(30), (vec![(1, 1)], vec![]));
        assert_eq!(fits(20), (vec![(1, 1)], vec![(7, 1)]));
        assert_eq!(fits(0), (vec![(1, 1)], vec![(7, 1), (8, 2)]), "the newest stays");
    }

    proptest! {
        #[test]
        fn fuzz_the_newest_stays_and_runs_go_only_when_nothing_else_is_left(
            rows in proptest::collection::vec((0..3u8, 1..3u32, 0..1000u64, 0..9u64), 1..20),
            keep in 1..4usize,
            max_bytes in 0..3000u64,
        ) {
            let snapshots: Vec<_> = rows
                .iter()
                .enumerate()
                .map(|(n, (boot, run, size, minute))| snapshot(&boot.to_string(), *run, n as u64, *size, *minute))
                .collect();
            let choice = choose(&snapshots, keep, max_bytes);
            let remaining = snapshots.len() - choice.superseded.len() - choice.runs.len();
            prop_assert!(remaining >= 1);
            let removed_bytes: u64 = choice.superseded.iter().chain(&choice.runs).map(|snapshot| snapshot.size).sum();
            let bytes = snapshots.iter().map(|snapshot| snapshot.size).sum::<u64>() - removed_bytes;
            prop_assert!(bytes <= max_bytes || remaining == 1);
        }
    }
}
