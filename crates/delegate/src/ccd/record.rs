//! Records: one line of JSON for each object, and for each probe that compilers disagree on.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;

use kdyno_lint::Finding;
use serde::Serialize;

/// The file that records go to; unset: there are none.
const RECORDS: &str = "KDYNO_RECORDS";

#[derive(Debug, Serialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    Rewritten,
    Passed,
    Fallback,
}

/// How an object was made.
#[derive(Debug, Serialize)]
pub struct ObjectRecord {
    pub object: String,
    /// The path in the kernel's tree, or in the object directory.
    pub source: String,
    pub answer: Answer,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub rule: Option<String>,
    pub compiler: String,
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub translated: Vec<(String, String)>,
    pub by_assembler: bool,
    pub passes: Vec<PassRecord>,
    /// The profiles that are about its source, by name.
    pub profiles: Vec<String>,
    pub notes: Vec<String>,
    /// What lints found, where the plan asks for them.
    pub findings: Vec<Finding>,
    /// CPU seconds of compiler, passes and assembler; none where ccd became the compiler.
    pub seconds: Option<f64>,
}

#[derive(Debug, Serialize, Clone, PartialEq)]
pub struct PassRecord {
    pub name: String,
    pub changes: usize,
}

/// A probe that the reference passes and another compiler doesn't.
#[derive(Debug, Serialize)]
pub struct ProbeRecord {
    pub probe: Vec<String>,
    pub refused_by: String,
    pub why: String,
}

/// Append a record by one write, so that those of ccds that run side by side stay whole.
pub fn append(record: &impl Serialize) -> Result<(), String> {
    let Some(path) = env::var_os(RECORDS).filter(|path| !path.is_empty()) else { return Ok(()) };
    let mut line = serde_json::to_vec(record).map_err(|error| format!("can't write a record: {error}"))?;
    line.push(b'\n');
    let of = |error| format!("can't write a record to {}: {error}", path.to_string_lossy());
    let mut file = OpenOptions::new().append(true).create(true).open(&path).map_err(of)?;
    match file.write(&line).map_err(of)? {
        written if written == line.len() => Ok(()),
        _ => Err(of(std::io::Error::other("no space for all of it"))),
    }
}
