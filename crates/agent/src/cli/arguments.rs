//! The command line, strictly: what isn't known is refused.

use crate::bench;
use crate::nearest::nearest;
use crate::params::Params;
use crate::runner::Planned;
use crate::settings::Settings;
use crate::test::Test;
use kdyno_proto::Lane;
use std::collections::BTreeMap;

pub enum Verb {
    Help,
    Version,
    List { json: bool },
    Run(Run),
    Tsc,
}

pub struct Run {
    pub plan: Vec<Planned>,
    pub iterations: u32,
    pub json: bool,
}

const OPTIONS: &[&str] = &["--param", "--iterations", "--lane", "--json", "--help", "--version"];

pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Verb, String> {
    let mut arguments = arguments.peekable();
    match arguments.next().as_deref() {
        Some("--help" | "-h" | "help") => Ok(Verb::Help),
        Some("--version" | "-V") => Ok(Verb::Version),
        Some("list") => parse_list(arguments),
        Some("run") => parse_run(arguments),
        Some("tsc") => arguments.next().map_or(Ok(Verb::Tsc), |other| Err(format!("tsc takes nothing, not '{other}'"))),
        Some(other) => {
            let near = nearest(other, ["list", "run", "tsc", "--help", "--version"]).unwrap_or_default();
            Err(format!("there is no '{other}': did you mean '{near}'? See 'kdyno-agent --help'"))
        }
        None => Err("say what to do: 'list', 'run', or '--help'".into()),
    }
}

fn parse_list(arguments: impl Iterator<Item = String>) -> Result<Verb, String> {
    let mut json = false;
    for argument in arguments {
        match argument.as_str() {
            "--json" => json = true,
            "--help" | "-h" => return Ok(Verb::Help),
            other => return Err(format!("list takes only --json, not '{other}'")),
        }
    }
    Ok(Verb::List { json })
}

fn parse_run(mut arguments: impl Iterator<Item = String>) -> Result<Verb, String> {
    let (mut tests, mut given) = (Vec::new(), Vec::new());
    let (mut iterations, mut json) = (Settings::default_iterations(Lane::Wall), false);
    while let Some(argument) = arguments.next() {
        // --option=value is --option value.
        let (option, mut attached) = match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value.to_string())),
            _ => (argument.as_str(), None),
        };
        let mut value = || attached.take().or_else(|| arguments.next()).ok_or(format!("{option} needs a value"));
        match option {
            "--param" => given.push(value()?),
            "--iterations" => iterations = whole_number(option, &value()?)?,
            "--lane" => check_lane(&value()?)?,
            "--json" => json = true,
            "--help" | "-h" => return Ok(Verb::Help),
            "all" => tests.extend(bench::TESTS),
            other if other.starts_with('-') => {
                let near = nearest(other, OPTIONS.iter().copied()).unwrap_or_default();
                return Err(format!("there is no option '{other}': did you mean '{near}'?"));
            }
            // Not split at '=': a test's name has none.
            _ => tests.push(bench::find(&argument)?),
        }
        if let Some(value) = attached {
            return Err(format!("{option} takes no value, not '{value}'"));
        }
    }
    if tests.is_empty() {
        return Err("say which tests to run, or 'all': 'kdyno-agent list' shows them".into());
    }
    Ok(Verb::Run(Run { plan: plan(&tests, &given)?, iterations, json }))
}

fn whole_number(option: &str, text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{option} needs a whole number of at least 1, not '{text}'")),
    }
}

fn check_lane(lane: &str) -> Result<(), String> {
    match lane {
        "wall" => Ok(()),
        "model" => Err("lane model needs a guest that counts instructions: use 'kdyno run'".into()),
        other => Err(format!("there is no lane '{other}' here, only 'wall'")),
    }
}

/// Deals the parameters to the tests; each must go somewhere.
fn plan(tests: &[&'static Test], given: &[String]) -> Result<Vec<Planned>, String> {
    let mut dealt: Vec<BTreeMap<String, u64>> = vec![BTreeMap::new(); tests.len()];
    for text in given {
        let (target, value) = text.split_once('=').ok_or(format!("--param needs KEY=VALUE, not '{text}'"))?;
        let value: u64 = value.parse().map_err(|_| format!("--param {target} needs a whole number, not '{value}'"))?;
        let (only, key) = match target.split_once('.') {
            Some((test, key)) => (Some(bench::find(test)?), key),
            None => (None, target),
        };
        let mut taken = false;
        for (test, params) in tests.iter().zip(&mut dealt) {
            let wanted = match only {
                Some(only) => only.name == test.name,
                None => test.params.iter().any(|param| param.name == key),
            };
            if wanted {
                params.insert(key.into(), value);
                taken = true;
            }
        }
        if !taken {
            return Err(nobody_takes(tests, only, key));
        }
    }
    let resolve =
        |(test, params): (&&'static Test, _)| Ok(Planned { test, params: Params::resolve(test, Lane::Wall, params)? });
    tests.iter().zip(&dealt).map(resolve).collect()
}

fn nobody_takes(tests: &[&'static Test], only: Option<&Test>, key: &str) -> String {
    if let Some(test) = only {
        return format!("{} has a parameter but is not among the tests to run", test.name);
    }
    let known = tests.iter().flat_map(|test| test.params).map(|param| param.name);
    match nearest(key, known) {
        Some(near) => format!("no test to run has the parameter '{key}': did you mean '{near}'?"),
        None => format!("no test to run has the parameter '{key}', or any"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Run, String> {
        match parse(line.split_whitespace().map(String::from))? {
            Verb::Run(run) => Ok(run),
            _ => panic!("not a run"),
        }
    }

    #[test]
    fn a_parameter_goes_to_the_test_named_or_to_all_that_have_it() {
        let run = run("run lat_tcp lat_udp --param bytes=8 --param=lat_udp.bytes=9 --iterations=3 --json").unwrap();
        let values: Vec<_> = run.plan.iter().map(|planned| planned.params.get("bytes")).collect();
        assert_eq!((values, run.iterations, run.json), (vec![8, 9], 3, true));
    }

    #[test]
    fn all_is_every_test() {
        assert_eq!(run("run all").unwrap().plan.len(), bench::TESTS.len());
    }

    #[test]
    fn what_is_not_known_is_refused_with_one_message() {
        for (line, expected) in [
            ("", "say what to do"),
            ("lits", "did you mean 'list'?"),
            ("list --jsn", "list takes only --json"),
            ("run", "say which tests"),
            ("run lat_pip", "did you mean 'lat_pipe'?"),
            ("run lat_pipe --itertions 3", "did you mean '--iterations'?"),
            ("run lat_pipe --iterations 0", "at least 1"),
            ("run lat_pipe --iterations", "--iterations needs a value"),
            ("run lat_pipe --json=yes", "--json takes no value"),
            ("run lat_pipe --lane model", "use 'kdyno run'"),
            ("run lat_pipe --lane pmu", "no lane 'pmu'"),
            ("run lat_ctx --param processes", "needs KEY=VALUE"),
            ("run lat_ctx --param processes=two", "needs a whole number"),
            ("run lat_ctx --param process=2", "did you mean 'processes'?"),
            ("run lat_ctx --param lat_ctx.process=2", "did you mean 'processes'?"),
            ("run lat_ctx --param lat_tcp.bytes=2", "not among the tests to run"),
            ("run lat_pipe --param x=2", "or any"),
        ] {
            let error = parse(line.split_whitespace().map(String::from)).err().unwrap();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
