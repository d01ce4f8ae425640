//! What this agent can measure.

use crate::bench::TESTS;
use crate::params::Param;
use crate::session::VERSION;
use crate::test::{Metric, Test};
use kdyno_proto::{Catalogue, CatalogueBenchmark, CatalogueParam, CatalogueTest, Lane};
use std::fmt::Write;

pub fn json() -> String {
    Catalogue::new(VERSION, TESTS.iter().map(|test| of_test(test)).collect()).to_line()
}

fn of_test(test: &Test) -> CatalogueTest {
    CatalogueTest {
        name: test.name.into(),
        suite: test.suite,
        description: test.description.into(),
        benchmarks: test.metrics.iter().map(|metric| of_metric(test, metric)).collect(),
        params: test.params.iter().map(of_param).collect(),
    }
}

fn of_metric(test: &Test, metric: &Metric) -> CatalogueBenchmark {
    CatalogueBenchmark { name: test.benchmark(metric), description: metric.description.into(), kind: metric.kind }
}

fn of_param(param: &Param) -> CatalogueParam {
    CatalogueParam {
        name: param.name.into(),
        description: param.description.into(),
        defaults: Lane::all().map(|lane| (lane, param.default(lane))).collect(),
        min: param.min,
        max: param.max,
    }
}

pub fn text() -> String {
    let mut text = String::new();
    for test in TESTS {
        let _ = writeln!(text, "{:<14} {}", test.name, test.description);
        for metric in test.metrics.iter().filter(|metric| !metric.suffix.is_empty()) {
            let _ = writeln!(text, "    .{:<13} {}", metric.suffix, metric.description);
        }
        for param in test.params {
            let Param { name, description, min, max, .. } = param;
            let default = param.default(Lane::usual(false));
            let _ = writeln!(text, "    {name:<14} {description}: {min} to {max}, default {default}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_every_test_and_is_one_line_of_json_when_asked() {
        assert!(TESTS.iter().all(|test| text().contains(test.name)));
        assert_eq!(json().lines().count(), 1);
        assert!(json().starts_with(r#"{"v":1,"agent":""#));
    }
}
