//! What the program is told, as one JSON object.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::binary::Named;
use crate::costly::Rule;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Files to look through: objects, or a linked kernel.
    pub files: Vec<String>,
    /// Names of lints; empty: all.
    pub only: Vec<String>,
    /// Names of functions that the source declares always_inline.
    pub always_inline: Vec<String>,
    /// Names that the kernel has beside those that `files` define.
    pub symbols: Vec<String>,
    /// By file, the functions of a linked kernel, for one that has no symbols of its own.
    pub functions: BTreeMap<String, Vec<Named>>,
    /// `files` and `symbols` are all that there is: a name that none of them defines is nowhere.
    pub is_whole: bool,
    /// What the chosen CPU family is bad at.
    pub costly: Vec<Rule>,
    /// How often instructions are executed, of a million of a load; for a set of one linked kernel.
    pub executions: Option<Vec<(u64, f64)>>,
}

impl Settings {
    pub fn asks_for(&self, lint: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == lint)
    }
}
