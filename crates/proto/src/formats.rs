//! What the host must have alike, kept in formats.json.

use crate::job::LARGEST_SHIFT;
use crate::line::tests::one_of_each;
use crate::{COUNTERS_PORT, Job, JobTest, Program, Record, Soak, VERSION};
use kdyno_formats::{compare, fields};
use serde_json::json;

#[test]
fn the_formats_are_those_that_are_kept() {
    let lines: Vec<_> = one_of_each().into_iter().map(|(_, line)| line).collect();
    let formats = json!({
        "version": VERSION,
        "largest_shift": LARGEST_SHIFT,
        "counters_port": COUNTERS_PORT,
        "fields": {
            "Job": fields::<Job>(),
            "JobTest": fields::<JobTest>(),
            "Program": fields::<Program>(),
            "Soak": fields::<Soak>(),
        },
        "types": types(),
        "records": lines,
    });
    compare(env!("CARGO_MANIFEST_DIR"), &formats);
}

/// Return the types of all records, as serde lists them in its error.
fn types() -> Vec<String> {
    let error = Record::from_line(r#"{"v":1,"type":"none"}"#).unwrap_err().to_string();
    error.split('`').skip(3).step_by(2).map(String::from).collect()
}
