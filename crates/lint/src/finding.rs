//! What a lint says: one place in one file.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The kernel does another thing than its source says.
    Error,
    /// Not what the source asks for.
    Warning,
    /// Right, but slow on the CPU that was named; or what the lint can't tell.
    Note,
}

/// One finding, as a line of JSON has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub lint: &'static str,
    pub level: Level,
    /// The object or vmlinux, under the name that it was given by.
    pub file: String,
    /// Relative to the root of the kernel's source; absolute where that root isn't known; None without line tables.
    pub source: Option<String>,
    pub line: Option<u64>,
    pub function: String,
    /// Hexadecimal: in the section for an object, in memory for a linked kernel.
    pub address: String,
    pub section: String,
    /// Intel's order of operands; empty where the finding isn't about one instruction.
    pub instruction: String,
    pub message: String,
    /// Where a load is known: how often the function executes such instructions, of a million instructions of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executions: Option<f64>,
    /// The cycles that a better sequence would save at most, in the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<f64>,
}
