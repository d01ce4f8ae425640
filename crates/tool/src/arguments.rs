//! The words of a command line, strictly: `--option VALUE`, `--option=VALUE`, and words without hyphens. An error is one
//! line that names the word.

use lexopt::{Arg, Error, Parser};
use std::ffi::OsString;
use std::ops::RangeInclusive;

/// What a letter behind a number makes of it.
pub type Units<'a> = &'a [(char, u64)];

pub const BYTES: Units = &[('K', 1 << 10), ('M', 1 << 20), ('G', 1 << 30)];

pub struct Arguments(Parser);

#[derive(Debug, PartialEq)]
pub enum Argument {
    /// `--json`, `-h`
    Option(String),
    Word(String),
}

impl Argument {
    pub fn asks_for_help(&self) -> bool {
        matches!(self, Argument::Option(option) if option == "--help" || option == "-h")
    }

    pub fn asks_for_version(&self) -> bool {
        matches!(self, Argument::Option(option) if option == "--version" || option == "-V")
    }

    /// Return the argument as it was written.
    pub fn text(&self) -> &str {
        match self {
            Argument::Option(text) | Argument::Word(text) => text,
        }
    }
}

impl Arguments {
    /// Return the arguments in the words after the program's name.
    pub fn new(words: impl Iterator<Item = OsString>) -> Arguments {
        Arguments(Parser::from_args(words))
    }

    /// Return the next argument; None if there are no more.
    pub fn next_argument(&mut self) -> Result<Option<Argument>, String> {
        Ok(match self.0.next().map_err(said)? {
            None => None,
            Some(Arg::Short(letter)) => Some(Argument::Option(format!("-{letter}"))),
            Some(Arg::Long(name)) => Some(Argument::Option(format!("--{name}"))),
            Some(Arg::Value(word)) => Some(Argument::Word(text(word)?)),
        })
    }

    /// Return the value of the last option.
    pub fn value(&mut self) -> Result<String, String> {
        text(self.0.value().map_err(said)?)
    }
}

fn text(word: OsString) -> Result<String, String> {
    word.into_string().map_err(|word| format!("{} is not UTF-8", word.display()))
}

fn said(error: Error) -> String {
    match error {
        Error::MissingValue { option: Some(option) } => format!("{option} needs a value"),
        Error::UnexpectedValue { option, value } => format!("{option} takes no value, not '{}'", value.display()),
        other => other.to_string(),
    }
}

/// Parse what follows `list`: return whether JSON is requested, or None where help is. Fails with a message for
/// anything else.
pub fn list_as_json(mut arguments: Arguments) -> Result<Option<bool>, String> {
    let mut json = false;
    while let Some(argument) = arguments.next_argument()? {
        match &argument {
            Argument::Option(option) if option == "--json" => json = true,
            help if help.asks_for_help() => return Ok(None),
            other => return Err(format!("list takes only --json, not '{}'", other.text())),
        }
    }
    Ok(Some(json))
}

/// Return the value of an option that takes a whole number.
pub fn whole_number(option: &str, text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| format!("{option} takes a whole number from {} to {}, not '{text}'", range.start(), range.end()))
}

/// Parse `4096`, `500K`: a whole number with at most one unit behind it.
pub fn scaled(text: &str, units: Units) -> Option<u64> {
    let unit = units.iter().find_map(|(letter, scale)| Some((text.strip_suffix(*letter)?, *scale)));
    let (number, scale) = unit.unwrap_or((text, 1));
    number.parse::<u64>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStringExt;

    fn arguments(line: &str) -> Arguments {
        Arguments::new(line.split_whitespace().map(OsString::from).collect::<Vec<_>>().into_iter())
    }

    fn all(mut arguments: Arguments) -> Result<Vec<Argument>, String> {
        std::iter::from_fn(|| arguments.next_argument().transpose()).collect()
    }

    #[test]
    fn options_and_words_come_in_order() {
        let option = |text: &str| Argument::Option(text.into());
        let word = |text: &str| Argument::Word(text.into());
        let expected = vec![word("run"), option("--json"), option("-h"), word("-"), word("--json")];
        assert_eq!(all(arguments("run --json -h - -- --json")), Ok(expected));
    }

    #[test]
    fn a_value_is_the_next_word_or_stands_behind_an_equals_sign() {
        for line in ["--every -5s x", "--every=-5s x"] {
            let mut arguments = arguments(line);
            assert_eq!(arguments.next_argument().unwrap().unwrap().text(), "--every");
            assert_eq!(arguments.value(), Ok("-5s".into()));
            assert_eq!(arguments.next_argument(), Ok(Some(Argument::Word("x".into()))));
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_the_word() {
        let mut without = arguments("--every");
        without.next_argument().unwrap();
        assert_eq!(without.value().unwrap_err(), "--every needs a value");
        assert_eq!(all(arguments("--json=yes")).unwrap_err(), "--json takes no value, not 'yes'");
        let bytes = Arguments::new([OsString::from_vec(vec![b'a', 0xff])].into_iter());
        assert_eq!(all(bytes).unwrap_err(), "a\u{fffd} is not UTF-8");
    }

    #[test]
    fn numbers_have_bounds_and_units() {
        assert_eq!(whole_number("--keep", "3", 1..=3), Ok(3));
        for text in ["0", "4", "", "-1", "1.5", "99999999999999999999"] {
            let refused = format!("--keep takes a whole number from 1 to 3, not '{text}'");
            assert_eq!(whole_number("--keep", text, 1..=3), Err(refused));
        }
        assert_eq!(["7", "2K", "64M", "1G"].map(|text| scaled(text, BYTES)), [7, 2048, 64 << 20, 1 << 30].map(Some));
        let refused = ["", "K", "5KK", "5KM", "-1", "99999999999999999999", "99999999999G"];
        assert_eq!(refused.map(|text| scaled(text, BYTES)), [None; 7]);
    }

    proptest! {
        #[test]
        fn fuzz_any_bytes_are_understood_or_refused(words in proptest::collection::vec(
            proptest::collection::vec(prop_oneof![Just(b'-'), Just(b'='), any::<u8>()], 0..6), 0..6),
            takes_values in any::<bool>(),
        ) {
            let mut arguments = Arguments::new(words.into_iter().map(OsString::from_vec));
            while let Ok(Some(argument)) = arguments.next_argument() {
                if takes_values && argument.text().starts_with('-') {
                    let _ = arguments.value();
                }
            }
        }
    }
}
