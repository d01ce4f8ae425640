//! What the host must have alike, kept in formats.json.

use super::keeper::{MOST_TOLD, TAIL};
use super::memory::FIELDS;
use crate::init::no_port;
use serde_json::json;

#[test]
fn the_formats_are_those_that_are_kept() {
    let formats = json!({
        "most_told": MOST_TOLD,
        "tail": TAIL,
        "memory_fields": FIELDS,
        "no_port": no_port(kdyno_proto::PORT),
    });
    kdyno_formats::compare(env!("CARGO_MANIFEST_DIR"), &formats);
}
