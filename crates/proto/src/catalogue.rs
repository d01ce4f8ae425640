//! What an agent can be asked to do: the output of `kdyno-agent list --json`, one line.

use crate::{JOB_PATH, Kind, LANES, Lane, LaneRow, PORT, Suite, VERSION, line::to_ascii};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Serialize)]
pub struct Catalogue {
    pub v: u64,
    /// Version of the agent.
    pub agent: String,
    /// The virtio port that it looks for in a guest.
    pub port: String,
    /// Where it looks for its job there.
    pub job: String,
    pub lanes: Vec<LaneRow>,
    pub tests: Vec<CatalogueTest>,
}

#[derive(Debug, Serialize)]
pub struct CatalogueTest {
    pub name: String,
    pub suite: Option<Suite>,
    pub description: String,
    pub benchmarks: Vec<CatalogueBenchmark>,
    pub params: Vec<CatalogueParam>,
}

#[derive(Debug, Serialize)]
pub struct CatalogueBenchmark {
    pub name: String,
    pub description: String,
    pub kind: Kind,
}

#[derive(Debug, Serialize)]
pub struct CatalogueParam {
    pub name: String,
    pub description: String,
    pub defaults: BTreeMap<Lane, u64>,
    pub min: u64,
    pub max: u64,
}

impl Catalogue {
    pub fn new(agent: &str, tests: Vec<CatalogueTest>) -> Catalogue {
        Catalogue {
            v: VERSION,
            agent: agent.into(),
            port: PORT.into(),
            job: JOB_PATH.into(),
            lanes: LANES.to_vec(),
            tests,
        }
    }

    pub fn to_line(&self) -> String {
        let json = serde_json::to_string(self).expect("a catalogue holds nothing JSON can't say");
        to_ascii(&json) + "\n"
    }
}
