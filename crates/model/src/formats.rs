//! What the host must have alike, kept in formats.json.

use crate::events::{CONTEXTS, Context, KERNEL_EVENTS, NAMES};
use crate::geometry::{Frontend, Geometry, Latency, Predictor, Prefetcher, SMALL, Tlb};
use kdyno_formats::{compare, fields};
use serde_json::json;

#[test]
fn the_formats_are_those_that_are_kept() {
    let contexts: [Context; CONTEXTS] = [Context::Task, Context::Exception, Context::Interrupt];
    assert!(contexts.iter().enumerate().all(|(number, context)| *context as usize == number));
    let geometry = Geometry::parse(SMALL).unwrap();
    let formats = json!({
        "events": NAMES,
        "kernel_events": KERNEL_EVENTS,
        "contexts": contexts.map(|context| format!("{context:?}").to_lowercase()),
        "ranges": geometry.ranges().iter().map(|(name, _, low, high)| json!([name, low, high])).collect::<Vec<_>>(),
        "fields": {
            "Frontend": fields::<Frontend>(),
            "Geometry": fields::<Geometry>(),
            "Latency": fields::<Latency>(),
            "Predictor": fields::<Predictor>(),
            "Prefetcher": fields::<Prefetcher>(),
            "Tlb": fields::<Tlb>(),
        },
    });
    compare(env!("CARGO_MANIFEST_DIR"), &formats);
}
