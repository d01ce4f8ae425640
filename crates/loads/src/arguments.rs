//! The command line, strictly: what isn't known is refused.

use crate::failure::{Failure, SEE_HELP};
use crate::load::Program;
use crate::loads::LOADS;
use crate::parameters::{Kind, Parameters, REPEAT, Setting, Value};
use kdyno_tool::arguments::{Argument, Arguments};
use std::ffi::OsString;

#[derive(Debug)]
pub enum Verb {
    Help,
    Version,
    Run { program: &'static Program, parameters: Parameters, json: bool },
}

pub fn parse(words: impl Iterator<Item = OsString>) -> Result<Verb, Failure> {
    let mut arguments = Arguments::new(words);
    let first = arguments.next_argument().map_err(mistake)?.ok_or_else(|| mistake("name the load to run"))?;
    if first.asks_for_help() || first.text() == "help" {
        return Ok(Verb::Help);
    }
    if first.asks_for_version() {
        return Ok(Verb::Version);
    }
    let name = first.text();
    let program = LOADS
        .iter()
        .find(|program| program.name == name)
        .ok_or_else(|| mistake(format!("there is no load '{name}'")))?;
    let (mut json, mut choices) = (false, Vec::new());
    while let Some(argument) = arguments.next_argument().map_err(mistake)? {
        if argument.asks_for_help() {
            return Ok(Verb::Help);
        }
        if argument == Argument::Option("--json".into()) {
            json = true;
            continue;
        }
        let setting = find_setting(program, &argument)
            .ok_or_else(|| mistake(format!("{name} does not take '{}'", argument.text())))?;
        choices.push((setting.name, setting.read(&arguments.value().map_err(mistake)?)?));
    }
    let values = settings(program).map(|setting| Ok((setting.name, choose_value(setting, &choices)?)));
    let parameters = Parameters::new(values.collect::<Result<_, Failure>>()?);
    (program.check)(&parameters)?;
    Ok(Verb::Run { program, parameters, json })
}

/// Return the setting that an option is for.
fn find_setting(program: &'static Program, argument: &Argument) -> Option<&'static Setting> {
    let Argument::Option(option) = argument else { return None };
    let name = option.strip_prefix("--")?;
    settings(program).find(|setting| setting.name == name)
}

fn settings(program: &'static Program) -> impl Iterator<Item = &'static Setting> {
    program.settings.iter().chain([&REPEAT])
}

/// Return the last value that was given, else the default.
fn choose_value(setting: &Setting, choices: &[(&str, Value)]) -> Result<Value, Failure> {
    match (choices.iter().rfind(|(name, _)| *name == setting.name), setting.default) {
        (Some((_, value)), _) => Ok(value.clone()),
        (None, Some(default)) => setting.read(default),
        (None, None) => Err(mistake(format!("--{} is missing", setting.name))),
    }
}

fn mistake(message: impl Into<String>) -> Failure {
    Failure::of_usage(message, SEE_HELP)
}

pub fn help() -> String {
    let mut text = String::from(
        "kdyno-loads: numeric and process loads of two published accounts, timed, with their results verified\n\n\
         usage: kdyno-loads LOAD [--OPTION VALUE]... [--json]\n       kdyno-loads --version | --help\n\n",
    );
    for program in LOADS {
        text += &format!("{:<10} {}\n", program.name, program.summary);
        for setting in settings(program) {
            let default = setting.default.map_or("has to be given".into(), |value| format!("default {value}"));
            text += &format!("             --{:<11} {} ({default})\n", setting.name, values(&setting.kind));
        }
    }
    text + "\n--repeat gives that many values for each metric. --advise tells the kernel of huge pages by madvise.\n\
            With --json the outcome is one line of JSON. The exit code is 0, 1 for a wrong result, 3 where the system\n\
            refused something, 64 for a mistake on the command line.\n"
}

fn values(kind: &Kind) -> String {
    match kind {
        Kind::Number { .. } => "a whole number".into(),
        Kind::PowerOfTwo { .. } => "a power of two".into(),
        Kind::Bytes { .. } => "bytes, with K, M or G if you like".into(),
        Kind::Word(words) => words.join(", "),
        Kind::Text => "a path".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_line(line: &str) -> Result<Verb, Failure> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn a_load_has_defaults_and_the_last_value_that_was_given_counts() {
        let Verb::Run { program, parameters, json } = parse_line("matmul --size 8 --json --size 16").unwrap() else {
            panic!("this runs a load")
        };
        assert_eq!((program.name, json), ("matmul", true));
        assert_eq!(parameters.text(), " size=16 threads=1 advise=nothing repeat=1");
    }

    #[test]
    fn every_default_is_a_value_that_could_be_given() {
        for program in LOADS {
            for setting in settings(program) {
                assert!(setting.default.is_none_or(|text| setting.read(text).is_ok()), "{} {setting:?}", program.name);
            }
        }
    }

    #[test]
    fn what_is_not_known_is_refused_with_one_message() {
        for (line, expected) in [
            ("", "name the load"),
            ("matmull", "there is no load 'matmull'"),
            ("matmul --bytes 5", "matmul does not take '--bytes'"),
            ("matmul -j", "matmul does not take '-j'"),
            ("matmul --size", "--size needs a value"),
            ("matmul --size 0", "--size takes a whole number from 1 to"),
            ("fft --size 1000", "a power of two"),
            ("sieve --bytes 1X", "with K, M or G"),
            ("himeno --size XXL", "--size takes XS, S, M, not 'XXL'"),
            ("loopio --file /x --mode fast", "--mode takes buffered, direct, not 'fast'"),
            ("loopio", "--file is missing"),
            ("loopio --file /x --mode direct --bytes 5000", "a multiple of 4096"),
        ] {
            let failure = parse_line(line).unwrap_err();
            assert_eq!(failure.exit_code, 64, "{line}");
            assert!(failure.to_string().contains(expected), "{line}: {failure}");
        }
    }

    proptest! {
        #[test]
        fn fuzz_any_words_are_understood_or_refused(words in proptest::collection::vec(
            prop_oneof!["matmul|sieve|himeno|loopio", "--(size|bytes|repeat|json|mode|file)", "[0-9]{0,21}[KMG]{0,2}", ".{0,9}"],
            0..6,
        )) {
            if let Err(failure) = parse(words.into_iter().map(OsString::from)) {
                prop_assert_eq!(failure.exit_code, 64);
            }
        }
    }
}
