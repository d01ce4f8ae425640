//! The command line, strictly: what isn't known is refused.

use crate::bench;
use crate::measure::Clock;
use crate::nearest::nearest;
use crate::runner::Planned;
use crate::settings::Settings;
use crate::test::Test;
use kdyno_proto::Lane;
use kdyno_tool::arguments::{Argument, Arguments, list_as_json, whole_number};
use std::collections::BTreeMap;
use std::ffi::OsString;

pub enum Verb {
    Help,
    Version,
    List { json: bool },
    Run(Run),
    Do { job: String },
    Kexec { kernel: String, initrd: Option<String>, words: String },
    KexecStart,
    Tsc,
}

pub struct Run {
    pub plan: Vec<Planned>,
    pub settings: Settings,
    pub json: bool,
}

const VERBS: &[&str] = &["list", "run", "do", "kexec", "kexec-start", "tsc", "--help", "--version"];
const OPTIONS: &[&str] = &["--param", "--iterations", "--shift", "--json", "--help"];

/// The largest shift of QEMU's -icount.
const LARGEST_SHIFT: u64 = 10;

pub fn parse(words: impl Iterator<Item = OsString>) -> Result<Verb, String> {
    let mut arguments = Arguments::new(words);
    let first = arguments.next_argument()?.ok_or("name what to do: 'list', 'run', or '--help'")?;
    if first.asks_for_help() {
        return Ok(Verb::Help);
    }
    if first.asks_for_version() {
        return Ok(Verb::Version);
    }
    match first.text() {
        "help" => Ok(Verb::Help),
        "list" => Ok(list_as_json(arguments)?.map_or(Verb::Help, |json| Verb::List { json })),
        "run" => parse_run(arguments),
        "do" => match (arguments.next_argument()?, arguments.next_argument()?) {
            (Some(Argument::Word(job)), None) => Ok(Verb::Do { job }),
            _ => Err("do takes the file of a job".into()),
        },
        "kexec" => parse_kexec(arguments),
        "kexec-start" => match arguments.next_argument()? {
            None => Ok(Verb::KexecStart),
            Some(other) => Err(format!("kexec-start takes nothing, not '{}'", other.text())),
        },
        "tsc" => match arguments.next_argument()? {
            None => Ok(Verb::Tsc),
            Some(other) => Err(format!("tsc takes nothing, not '{}'", other.text())),
        },
        other => {
            let near = nearest(other, VERBS.iter().copied()).unwrap_or_default();
            Err(format!("there is no '{other}': did you mean '{near}'? See 'kdyno-agent --help'"))
        }
    }
}

fn parse_kexec(mut arguments: Arguments) -> Result<Verb, String> {
    let (mut kernel, mut initrd, mut words) = (None, None, None);
    while let Some(argument) = arguments.next_argument()? {
        match argument {
            Argument::Option(option) if option == "--initrd" => initrd = Some(arguments.value()?),
            Argument::Option(option) if option == "--cmdline" => words = Some(arguments.value()?),
            Argument::Word(word) if kernel.is_none() => kernel = Some(word),
            other => return Err(format!("kexec does not take '{}'", other.text())),
        }
    }
    match (kernel, words) {
        (Some(kernel), Some(words)) => Ok(Verb::Kexec { kernel, initrd, words }),
        _ => Err("kexec takes KERNEL and --cmdline WORDS".into()),
    }
}

fn parse_run(mut arguments: Arguments) -> Result<Verb, String> {
    let (mut tests, mut given) = (Vec::new(), Vec::new());
    let (mut iterations, mut shift, mut json) = (None, None, false);
    while let Some(argument) = arguments.next_argument()? {
        if argument.asks_for_help() {
            return Ok(Verb::Help);
        }
        let option = match &argument {
            Argument::Option(option) => option.as_str(),
            Argument::Word(word) => {
                tests.extend(bench::named(word)?);
                continue;
            }
        };
        match option {
            "--param" => given.push(arguments.value()?),
            "--iterations" => {
                iterations = Some(whole_number(option, &arguments.value()?, 1..=u32::MAX.into())? as u32);
            }
            "--shift" => shift = Some(whole_number(option, &arguments.value()?, 0..=LARGEST_SHIFT)? as u8),
            "--json" => json = true,
            other => {
                let near = nearest(other, OPTIONS.iter().copied()).unwrap_or_default();
                return Err(format!("there is no option '{other}': did you mean '{near}'?"));
            }
        }
    }
    if tests.is_empty() {
        return Err("name the tests to run, or 'all': 'kdyno-agent list' shows them".into());
    }
    let lane = Lane::usual(shift.is_some());
    let iterations = iterations.unwrap_or(lane.row().iterations);
    let settings = Settings { lane, clock: Clock::of(lane, shift), iterations };
    Ok(Verb::Run(Run { plan: plan(&tests, &given, lane)?, settings, json }))
}

/// Return the tests with their parameters; each of those must belong to a test.
fn plan(tests: &[&'static Test], given: &[String], lane: Lane) -> Result<Vec<Planned>, String> {
    let mut params = BTreeMap::new();
    for text in given {
        let (key, value) = text.split_once('=').ok_or(format!("--param needs KEY=VALUE, not '{text}'"))?;
        let value: u64 = value.parse().map_err(|_| format!("--param {key} needs a whole number, not '{value}'"))?;
        if !tests.iter().any(|test| has(test, key)) {
            return Err(no_param(tests, key));
        }
        params.insert(key.to_string(), value);
    }
    let planned = |test: &&'static Test| {
        let own = params.iter().filter(|(key, _)| has(test, key)).map(|(key, value)| (key.clone(), *value)).collect();
        Ok(Planned { test, params: test.resolve(lane, &own)? })
    };
    tests.iter().map(planned).collect()
}

fn has(test: &Test, key: &str) -> bool {
    test.params.iter().any(|param| param.name == key)
}

fn no_param(tests: &[&'static Test], key: &str) -> String {
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
        match parse(line.split_whitespace().map(OsString::from))? {
            Verb::Run(run) => Ok(run),
            _ => panic!("not a run"),
        }
    }

    #[test]
    fn a_parameter_goes_to_all_tests_that_have_it() {
        let run = run("run lat_tcp lat_udp lat_pipe --param bytes=8 --iterations 3 --json").unwrap();
        let values: Vec<_> = run.plan[..2].iter().map(|planned| planned.params.get("bytes")).collect();
        assert_eq!((values, run.plan.len(), run.settings.iterations, run.json), (vec![8, 8], 3, 3, true));
    }

    #[test]
    fn a_shift_means_the_model_lane_with_its_defaults() {
        let model = run("run bw_file_rd --shift 5").unwrap();
        assert_eq!((model.settings.icount_shift(), model.plan[0].params.get("size_kb")), (Some(5), 128));
        assert_eq!(model.settings.iterations, Lane::usual(true).row().iterations);
        let wall = run("run bw_file_rd").unwrap();
        assert_eq!((wall.settings.icount_shift(), wall.plan[0].params.get("size_kb")), (None, 8192));
    }

    #[test]
    fn all_is_every_test_and_a_suite_is_its_tests() {
        assert_eq!(run("run all").unwrap().plan.len(), bench::TESTS.len());
        assert_eq!(run("run lmbench").unwrap().plan.len(), 19);
    }

    #[test]
    fn what_is_not_known_is_refused_with_one_message() {
        for (line, expected) in [
            ("", "name what to do"),
            ("lits", "did you mean 'list'?"),
            ("list --jsn", "list takes only --json"),
            ("do", "do takes the file"),
            ("do a b", "do takes the file"),
            ("run", "name the tests"),
            ("run lat_pip", "did you mean 'lat_pipe'?"),
            ("run lat_pipe --itertions 3", "did you mean '--iterations'?"),
            ("run lat_pipe --iterations 0", "from 1 to"),
            ("run lat_pipe --shift 11", "from 0 to 10"),
            ("run lat_pipe --iterations", "--iterations needs a value"),
            ("run lat_pipe --json=yes", "--json takes no value"),
            ("kexec", "kexec takes KERNEL"),
            ("kexec vmlinuz", "kexec takes KERNEL"),
            ("kexec vmlinuz more --cmdline ro", "kexec does not take 'more'"),
            ("kexec vmlinuz --cmdlin ro", "kexec does not take '--cmdlin'"),
            ("kexec-start now", "kexec-start takes nothing"),
            ("tsc now", "tsc takes nothing"),
            ("do -j", "do takes the file"),
            ("run lat_ctx --param processes", "needs KEY=VALUE"),
            ("run lat_ctx --param processes=two", "needs a whole number"),
            ("run lat_ctx --param process=2", "did you mean 'processes'?"),
            ("run lat_pipe --param x=2", "or any"),
        ] {
            let error = parse(line.split_whitespace().map(OsString::from)).err().unwrap();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
