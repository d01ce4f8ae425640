//! What a benchmark file declares beside its code.

use crate::measure::Recorder;
use crate::params::{Param, Params};
use crate::sys::Stop;
use kdyno_proto::{Kind, Lane, Suite};
use std::collections::BTreeMap;

/// A test: a name, what it can be asked, and what it measures.
#[derive(Debug)]
pub struct Test {
    pub name: &'static str,
    /// The suite that it belongs to, whose name represents all of its tests.
    pub suite: Option<Suite>,
    pub description: &'static str,
    pub params: &'static [Param],
    pub metrics: &'static [Metric],
}

/// One number that a test measures: a benchmark of the records. Each runs in a fresh process.
#[derive(Debug)]
pub struct Metric {
    /// Makes the benchmark's name: TEST.SUFFIX, or just TEST when it is empty.
    pub suffix: &'static str,
    pub kind: Kind,
    pub description: &'static str,
    /// Operations of one iteration in the model lane. For cheap operations as many as cost some 30 to 200 thousand
    /// instructions: less than a timer tick at HZ=100 and 32 ns an instruction, and enough that one refill of a
    /// per-CPU list of pages or objects is not all there is to see. For dear operations few.
    pub model_operations: u64,
    pub run: fn(&Recorder, &Params) -> Result<(), Stop>,
}

impl Test {
    /// Return the test's parameters, with the defaults of `lane` overridden by `given`.
    pub fn resolve(&self, lane: Lane, given: &BTreeMap<String, u64>) -> Result<Params, String> {
        Params::resolve(self.name, self.params, lane, given)
    }

    pub fn benchmark(&self, metric: &Metric) -> String {
        match metric.suffix {
            "" => self.name.into(),
            suffix => format!("{}.{suffix}", self.name),
        }
    }
}
