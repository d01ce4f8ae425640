//! What a load says of itself: one JSON object on one line, or a short text.

use crate::clock::{Faults, Timing};
use crate::large_pages::{FaultCounts, SizeCounts};
use crate::memory::Memory;
use crate::parameters::Parameters;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Higher,
    Lower,
}

/// One number of one repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    pub name: String,
    pub value: f64,
    pub unit: String,
    pub direction: Direction,
}

/// One repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    pub readings: Vec<Reading>,
    pub timing: Timing,
}

/// What is known of the result itself, by name: a checksum, a number of primes.
pub type Facts = Map<String, Value>;

/// A number over all repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    pub name: String,
    /// The median of `values`.
    pub value: f64,
    pub values: Vec<f64>,
    pub unit: String,
    /// Which is better.
    pub direction: Direction,
}

#[derive(Debug, Serialize)]
pub struct Outcome<'a> {
    pub name: &'static str,
    pub parameters: &'a Parameters,
    /// Making the data, first touch included; of several processes the longest.
    pub init_seconds: f64,
    pub metrics: Vec<Metric>,
    pub facts: Facts,
    /// The faults of the timed parts of all repetitions and processes.
    pub faults: Faults,
    /// Page faults that large pages served, by size, as the kernel counts them for the whole system; None where it
    /// doesn't, and for several processes.
    pub large_pages: Option<Vec<SizeCounts>>,
    /// While the arrays were mapped, of all processes; None where the kernel doesn't say.
    pub memory: Option<Memory>,
    /// Always true: a wrong result is a failure.
    pub verified: bool,
}

impl Reading {
    pub fn higher(name: &str, value: f64, unit: &str) -> Reading {
        Reading { name: name.into(), value, unit: unit.into(), direction: Direction::Higher }
    }

    pub fn lower(name: &str, value: f64, unit: &str) -> Reading {
        Reading { name: name.into(), value, unit: unit.into(), direction: Direction::Lower }
    }

    pub fn seconds(timing: &Timing) -> Reading {
        Reading::lower("seconds", timing.seconds(), "s")
    }

    /// Return millions of floating-point operations a second.
    pub fn mflops(operations: f64, timing: &Timing) -> Reading {
        Reading::higher("rate", operations / timing.seconds() / 1e6, "MFLOPS")
    }
}

/// Return the metrics in the order of the first repetition, each with a value of every repetition.
pub fn metrics(repetitions: &[Vec<Reading>]) -> Vec<Metric> {
    let first = repetitions.first().map_or(&[][..], Vec::as_slice);
    first
        .iter()
        .map(|Reading { name, unit, direction, .. }| {
            let readings = repetitions.iter().flatten().filter(|reading| reading.name == *name);
            let values: Vec<f64> = readings.map(|reading| reading.value).collect();
            let (name, unit) = (name.clone(), unit.clone());
            Metric { name, value: median(&values), values, unit, direction: *direction }
        })
        .collect()
}

/// Return the median of at least one value.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

impl Outcome<'_> {
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("names and numbers are JSON") + "\n"
    }

    pub fn text(&self) -> String {
        let mut text = format!("{}{}\n", self.name, self.parameters.text());
        for Metric { name, value, values, unit, .. } in &self.metrics {
            let _ = write!(text, "  {name:<24} {:>12} {unit}", figures(*value));
            if let (true, Some(least), Some(most)) =
                (values.len() > 1, values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max))
            {
                let _ = write!(text, " ({} to {})", figures(least), figures(most));
            }
            text.push('\n');
        }
        for (name, value) in &self.facts {
            let _ = writeln!(text, "  {name:<24} {:>12}", value.to_string().trim_matches('"'));
        }
        let Faults { minor, major } = self.faults;
        let _ = writeln!(text, "  {:<24} {:>12} s", "initialisation", figures(self.init_seconds));
        let _ = writeln!(text, "  {:<24} {minor:>12} minor, {major} major", "page faults");
        for SizeCounts { size_kb, initialisation, timed } in self.large_pages.iter().flatten() {
            let format_counts =
                |counts: &FaultCounts| format!("{} faults, {} fell back", counts.faults, counts.fallbacks);
            let title = format!("pages of {size_kb} kB");
            let _ =
                writeln!(text, "  {title:<24} {:>12}; before: {}", format_counts(timed), format_counts(initialisation));
        }
        if let Some(memory) = self.memory {
            let (resident, huge) = (memory.resident as f64 / 1e6, memory.anon_huge_pages as f64 / 1e6);
            let _ = writeln!(text, "  {:<24} {resident:>12.1} MB, {huge:.1} MB of it in huge pages", "resident");
        }
        text + "  the result is verified\n"
    }
}

/// Return the number with at least four significant figures.
fn figures(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        size => (3 - size.log10().floor() as i32).clamp(0, 12) as usize,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_a_value_of_each_repetition_and_their_median() {
        let repetition = |value| vec![Reading::lower("seconds", value, "s"), Reading::higher("rate", 2.0, "MB/s")];
        let metrics = metrics(&[repetition(3.0), repetition(1.0), repetition(2.0), repetition(9.0)]);
        assert_eq!((metrics[0].value, metrics[0].values.as_slice()), (2.5, &[3.0, 1.0, 2.0, 9.0][..]));
        assert_eq!((metrics[1].value, metrics[1].direction), (2.0, Direction::Higher));
    }

    #[test]
    fn numbers_are_shown_with_four_figures() {
        assert_eq!([0.0, 0.000_123_456, 1.5, 81234.56].map(figures), ["0", "0.0001235", "1.500", "81235"]);
    }
}
