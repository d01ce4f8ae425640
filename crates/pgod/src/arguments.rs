//! The command line, strictly: what isn't known is refused.

use crate::failure::Failure;
use kdyno_tool::arguments::{Argument, Arguments, BYTES, Units, scaled, whole_number};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const DIRECTORY: &str = "/var/lib/kdyno-pgod";
const SEE_HELP: &str = "`kdyno-pgod --help` lists what there is";
const LONGEST_SECONDS: u64 = 7 * 24 * 3600;
const MOST_KEPT: u64 = 1_000_000;

#[derive(Debug, PartialEq)]
pub enum Verb {
    Help,
    Version,
    Run(Settings),
    Status { directory: PathBuf, json: bool },
    Send { directory: PathBuf, boots: Vec<String> },
}

#[derive(Debug, PartialEq)]
pub struct Settings {
    pub directory: PathBuf,
    /// None: the kernel's own, /sys/kernel/debug/gcov.
    pub gcov: Option<PathBuf>,
    pub interval: Duration,
    /// Snapshots of one run that are kept, at least 1.
    pub keep: usize,
    pub max_bytes: u64,
}

pub fn parse(words: impl Iterator<Item = OsString>) -> Result<Verb, Failure> {
    let mut arguments = Arguments::new(words);
    let first =
        arguments.next_argument().map_err(mistake)?.ok_or_else(|| mistake("name what to do: run, status or send"))?;
    if first.asks_for_help() {
        return Ok(Verb::Help);
    }
    if first.asks_for_version() {
        return Ok(Verb::Version);
    }
    let verb = first.text();
    let options: &[&str] = match verb {
        "help" => return Ok(Verb::Help),
        "run" => &["--every", "--keep", "--max-bytes", "--gcov", "--directory"],
        "status" => &["--json", "--directory"],
        "send" => &["--boot", "--directory"],
        other => return Err(mistake(format!("there is no '{other}'"))),
    };
    let (mut json, mut boots) = (false, Vec::new());
    let mut settings = Settings {
        directory: DIRECTORY.into(),
        gcov: None,
        interval: Duration::from_secs(60),
        keep: 3,
        max_bytes: 1 << 30,
    };
    while let Some(argument) = arguments.next_argument().map_err(mistake)? {
        if argument.asks_for_help() {
            return Ok(Verb::Help);
        }
        let option = argument.text();
        if matches!(argument, Argument::Word(_)) || !options.contains(&option) {
            return Err(mistake(format!("{verb} does not take '{option}'")));
        }
        if option == "--json" {
            json = true;
            continue;
        }
        let value = arguments.value().map_err(mistake)?;
        match option {
            "--every" => settings.interval = time(&value)?,
            "--keep" => settings.keep = whole_number(option, &value, 1..=MOST_KEPT).map_err(mistake)? as usize,
            "--max-bytes" => settings.max_bytes = with_unit(option, &value, BYTES)?,
            "--gcov" => settings.gcov = Some(value.into()),
            "--boot" => boots.push(value),
            _ => settings.directory = value.into(),
        }
    }
    let directory = settings.directory.clone();
    Ok(match verb {
        "run" => Verb::Run(settings),
        "status" => Verb::Status { directory, json },
        _ => Verb::Send { directory, boots },
    })
}

/// Parse a time: `10s`, `5m`, `1h`, or plain seconds.
fn time(text: &str) -> Result<Duration, Failure> {
    let seconds = with_unit("--every", text, &[('s', 1), ('m', 60), ('h', 3600)])?;
    match seconds {
        1..=LONGEST_SECONDS => Ok(Duration::from_secs(seconds)),
        _ => Err(mistake(format!("--every takes from 1s to 168h, not '{text}'"))),
    }
}

fn with_unit(option: &str, text: &str, units: Units) -> Result<u64, Failure> {
    scaled(text, units).ok_or_else(|| {
        let letters: String = units.iter().map(|(letter, _)| format!(" {letter}")).collect();
        mistake(format!("{option} takes a whole number and a unit of{letters}, not '{text}'"))
    })
}

fn mistake(message: impl Into<String>) -> Failure {
    Failure::of_user(message, SEE_HELP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_line(line: &str) -> Result<Verb, Failure> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn settings(line: &str) -> Settings {
        match parse_line(line).unwrap() {
            Verb::Run(settings) => settings,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn times_and_sizes_have_units() {
        let run = settings("run --every 5m --max-bytes 200M --keep 7");
        assert_eq!((run.interval, run.max_bytes, run.keep), (Duration::from_secs(300), 200 << 20, 7));
        let plain = settings("run --every 10 --max-bytes 4096");
        assert_eq!((plain.interval, plain.max_bytes), (Duration::from_secs(10), 4096));
    }

    #[test]
    fn what_is_not_known_is_refused_with_one_message() {
        for (line, expected) in [
            ("", "name what to do"),
            ("rum", "there is no 'rum'"),
            ("status --every 5s", "status does not take '--every'"),
            ("run --every", "--every needs a value"),
            ("run --every 0s", "from 1s to 168h"),
            ("run --every 5d", "a whole number and a unit of s m h"),
            ("run --every -5s", "a whole number and a unit of s m h"),
            ("run --keep 0", "from 1 to"),
            ("run --max-bytes 99999999999G", "a unit of K M G"),
            ("run --max-bytes 5GG", "a unit of K M G"),
        ] {
            let message = parse_line(line).unwrap_err().to_string();
            assert!(message.contains(expected), "{line}: {message}");
        }
    }

    proptest! {
        #[test]
        fn fuzz_any_words_are_understood_or_refused(words in proptest::collection::vec(
            prop_oneof!["run|status|send", "--(every|keep|max-bytes|json|gcov|boot|directory)", "[0-9]{0,21}[smhKMG]{0,2}", ".{0,9}"],
            0..6,
        )) {
            if let Err(failure) = parse(words.into_iter().map(OsString::from)) {
                prop_assert_eq!(failure.exit_code, 1);
            }
        }
    }
}
