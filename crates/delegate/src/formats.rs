//! What the host must have alike, kept in formats.json.

use crate::grouped::LIST;
use crate::lkd::{ORDER, SCRIPT, SEED};
use serde_json::json;

#[test]
fn the_formats_are_those_that_are_kept() {
    let formats = json!({ "script": SCRIPT, "seed": SEED, "order": ORDER, "sections": LIST });
    kdyno_formats::compare(env!("CARGO_MANIFEST_DIR"), &formats);
}
