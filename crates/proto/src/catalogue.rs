//! What an agent can be asked to do: the output of `kdyno-agent list --json`, one line.

use crate::{Direction, Unit, VERSION, line::to_ascii};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    pub v: u64,
    /// Version of the agent.
    pub agent: String,
    pub tests: Vec<CatalogueTest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogueTest {
    pub name: String,
    pub description: String,
    pub benchmarks: Vec<CatalogueBenchmark>,
    pub params: Vec<CatalogueParam>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogueBenchmark {
    pub name: String,
    pub description: String,
    pub direction: Direction,
    /// Unit in the model lane.
    pub model: Unit,
    /// Unit in the wall lane.
    pub wall: Unit,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogueParam {
    pub name: String,
    pub description: String,
    /// Default in the model lane.
    pub model: u64,
    /// Default in the wall lane.
    pub wall: u64,
    pub min: u64,
    pub max: u64,
}

impl Catalogue {
    pub fn new(agent: &str, tests: Vec<CatalogueTest>) -> Catalogue {
        Catalogue { v: VERSION, agent: agent.into(), tests }
    }

    pub fn to_line(&self) -> String {
        let json = serde_json::to_string(self).expect("a catalogue holds nothing JSON can't say");
        to_ascii(&json) + "\n"
    }
}
