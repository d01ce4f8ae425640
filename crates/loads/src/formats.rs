//! What the host must have alike, kept in formats.json; that of an outcome itself is in every line.

use crate::clock::Faults;
use crate::large_pages::{FaultCounts, SizeCounts};
use crate::memory::Memory;
use crate::outcome::{Direction, Metric};
use kdyno_formats::{compare, fields, keys};
use serde_json::json;

#[test]
fn the_formats_are_those_that_are_kept() {
    let metric = Metric {
        name: String::new(),
        value: 0.0,
        values: Vec::new(),
        unit: String::new(),
        direction: Direction::Lower,
    };
    let size_counts = SizeCounts { size_kb: 0, initialisation: FaultCounts::default(), timed: FaultCounts::default() };
    let formats = json!({
        "Metric": keys(&metric),
        "Faults": fields::<Faults>(),
        "OfSize": keys(&size_counts),
        "Given": fields::<FaultCounts>(),
        "Memory": fields::<Memory>(),
    });
    compare(env!("CARGO_MANIFEST_DIR"), &formats);
}
