//! Records as a table: benchmark, median, unit, range.

use kdyno_proto::{Direction, Lane, Record};
use std::fmt::Write;

pub fn heading() -> String {
    format!("{:<26} {:>12} {:<5} {:>12} .. {:<12}\n", "benchmark", "median", "unit", "min", "max")
}

/// Return one row for each benchmark in `records` of a lane.
pub fn rows(records: &[Record], lane: Lane) -> String {
    let mut text = String::new();
    let starts = records.iter().enumerate().filter_map(|(i, record)| match record {
        Record::Benchmark { name, direction, .. } => Some((i, name, *direction)),
        _ => None,
    });
    for (start, name, direction) in starts {
        let own = records[start + 1..].iter().take_while(|record| !matches!(record, Record::Benchmark { .. }));
        let _ = writeln!(text, "{name:<26} {}", outcome(own, lane, direction));
    }
    text
}

fn outcome<'a>(records: impl Iterator<Item = &'a Record>, lane: Lane, direction: Direction) -> String {
    let mut values = Vec::new();
    for record in records {
        match record {
            Record::Sample { elapsed, work, .. } => values.push(lane.row().value(direction, *elapsed, *work)),
            Record::Unsupported { reason, .. } => return format!("unsupported: {reason}"),
            Record::Broken { reason, .. } => return format!("broken: {reason}"),
            _ => {}
        }
    }
    values.sort_by(f64::total_cmp);
    match values.as_slice() {
        [] => "no samples".into(),
        [min, ..] => {
            let (max, median) = (values[values.len() - 1], median(&values));
            format!("{median:>12.1} {:<5} {min:>12.1} .. {max:<12.1}", lane.row().unit(direction)).trim_end().into()
        }
    }
}

/// Return the median of sorted values: the mean of the middle two when there is no middle one.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn benchmark(name: &str) -> Record {
        Record::Benchmark {
            name: name.into(),
            test: name.into(),
            unit: "ns".into(),
            direction: Direction::Lower,
            description: "d".into(),
        }
    }

    fn sample(elapsed: u64) -> Record {
        Record::Sample { benchmark: "a".into(), iteration: 0, elapsed, work: 10 }
    }

    #[test]
    fn a_row_has_median_unit_and_range() {
        let rows = rows(&[benchmark("a"), sample(30), sample(10), sample(40), sample(20)], Lane::usual(false));
        let words: Vec<_> = rows.split_whitespace().collect();
        assert_eq!(words, ["a", "2.5", "ns", "1.0", "..", "4.0"]);
    }

    #[test]
    fn a_benchmark_without_a_result_says_why() {
        let unsupported = Record::Unsupported { benchmark: "a".into(), reason: "no TCP".into() };
        let broken = Record::Broken { benchmark: "b".into(), reason: "died".into() };
        let rows = rows(&[benchmark("a"), unsupported, benchmark("b"), sample(10), broken], Lane::usual(false));
        let lines: Vec<_> = rows.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines, ["a unsupported: no TCP", "b broken: died"]);
    }
}
