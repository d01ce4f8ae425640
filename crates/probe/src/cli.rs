//! The command line, strictly: what isn't known is refused.

use crate::program::Program;
use crate::programs::{KINDS, all};
use crate::{processor, run};
use kdyno_tool::arguments::{Argument, Arguments, list_as_json, whole_number};
use std::ffi::OsString;
use std::io::{Write, stdout};

const USAGE: &str = "\
kdyno-probe: small programs of many kinds, to fit a cycle model to and to test it on

usage: kdyno-probe list [--json]
       kdyno-probe run PROGRAM... [--times N] [--has_markers]

PROGRAM is a name from the list, or `all`. `run` prints a line of JSON for each: the best but a tenth of N runs (default 50) in
cycles of the processor, which a chain of additions before and after each run tells from the time-stamp counter. With --has_markers nothing is timed: each run stands between the markers that the emulated PMU counts by, the benchmark's
index is the program's place in the list, and all iterations but the last only warm up (at least N).
";

const MOST_TIMES: u64 = 10_000;

#[derive(Debug, PartialEq)]
pub enum Verb {
    Help,
    Version,
    List { json: bool },
    Run { programs: Vec<String>, times: u32, has_markers: bool },
}

pub fn parse(words: impl Iterator<Item = OsString>) -> Result<Verb, String> {
    let mut arguments = Arguments::new(words);
    let first = arguments.next_argument()?.ok_or("name what to do: 'list', 'run' or '--help'")?;
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
        other => Err(format!("there is no '{other}': use 'list', 'run' or '--help'")),
    }
}

fn parse_run(mut arguments: Arguments) -> Result<Verb, String> {
    let (mut programs, mut times, mut has_markers) = (Vec::new(), None, false);
    while let Some(argument) = arguments.next_argument()? {
        if argument.asks_for_help() {
            return Ok(Verb::Help);
        }
        match argument {
            Argument::Option(option) => match option.as_str() {
                "--marked" => has_markers = true,
                "--times" => times = Some(whole_number(&option, &arguments.value()?, 1..=MOST_TIMES)? as u32),
                _ => return Err(format!("run has no option '{option}'")),
            },
            Argument::Word(name) if name == "all" || all().any(|(_, program)| program.name == name) => {
                programs.push(name);
            }
            Argument::Word(name) => {
                return Err(format!("there is no program '{name}': 'kdyno-probe list' shows all"));
            }
        }
    }
    if programs.is_empty() {
        return Err("name the programs to run, or 'all'".into());
    }
    Ok(Verb::Run { programs, times: times.unwrap_or(if has_markers { 1 } else { 50 }), has_markers })
}

pub fn act(verb: &Verb) -> Result<(), String> {
    match verb {
        Verb::Help => say(USAGE),
        Verb::Version => say(&format!("kdyno-probe {}\n", env!("CARGO_PKG_VERSION"))),
        Verb::List { json } => list(*json),
        Verb::Run { programs, times, has_markers } => {
            if !has_markers {
                processor::pin()?;
            }
            let is_requested = |name: &str| programs.iter().any(|program| program == "all" || program == name);
            let requested = all().enumerate().filter(|(_, (_, program))| is_requested(program.name));
            for (index, (kind, program)) in requested {
                let result = measure(program, index as u16, *times, *has_markers);
                say(&format!("{{{},{result}}}\n", description(kind, program)))?;
            }
            Ok(())
        }
    }
}

fn measure(program: &Program, benchmark: u16, times: u32, has_markers: bool) -> String {
    let mut body = (program.prepare)();
    if has_markers {
        let turns = program.turns.max(times as u16);
        run::run_marked(&mut body, benchmark, turns);
        format!("\"benchmark\":{benchmark},\"times\":{turns}")
    } else {
        let run::Timing { cycles, beat } = run::time_runs(&mut body, times);
        format!("\"cycles\":{cycles:.0},\"ticks_per_cycle\":{beat:.3},\"times\":{times}")
    }
}

/// Return the description of a program as JSON. Names have nothing in them that JSON would need escaped; a test sees to
/// that.
fn description(kind: &str, program: &Program) -> String {
    format!("\"program\":\"{}\",\"kind\":\"{kind}\",\"role\":\"{}\"", program.name, program.role.name())
}

fn list(json: bool) -> Result<(), String> {
    if json {
        let rows: Vec<_> = all()
            .map(|(kind, program)| format!("{{{},\"about\":\"{}\"}}", description(kind, program), program.summary))
            .collect();
        return say(&format!("{{\"programs\":[\n{}\n]}}\n", rows.join(",\n")));
    }
    for (kind, programs) in KINDS {
        for Program { name, role, summary, .. } in *programs {
            say(&format!("{kind:<10} {:<8} {name:<22} {summary}\n", role.name()))?;
        }
    }
    Ok(())
}

/// Print a text. A reader that has gone is not a failure.
fn say(text: &str) -> Result<(), String> {
    let mut output = stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(format!("can't write: {error}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Verb, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn a_run_names_programs_and_how_often() {
        let run = Verb::Run { programs: vec!["all".into()], times: 7, has_markers: false };
        assert_eq!(parse_line("run all --times 7"), Ok(run));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for line in [
            "",
            "walk",
            "list all",
            "run",
            "run nothing",
            "run all --fast",
            "run all --times 0",
            "run all --times",
            "list --json=x",
        ] {
            assert!(parse_line(line).is_err(), "{line}");
        }
    }
}
