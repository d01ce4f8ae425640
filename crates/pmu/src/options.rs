//! The plugin's options, `k=v` each. What is not understood, doubled or missing is refused: half-configured counts
//! would be wrong counts.

use std::fmt;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// System emulation: addresses in the kernel's half.
    Kernel,
    /// System emulation: the same, and user code's accesses to memory.
    All,
    /// User-mode emulation: the whole program.
    User,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// The PMU record to write.
    pub record: PathBuf,
    pub scope: Scope,
    /// Caches, TLBs, predictor and stacks too; their geometry's file.
    pub geometry: Option<PathBuf>,
    /// The sequence of blocks of each region too.
    pub is_traced: bool,
    /// Functions by address.
    pub symbols: Option<PathBuf>,
    /// SHA-256 of the vmlinux that the symbols are of.
    pub image: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum OptionError {
    NotKeyValue(String),
    Unknown(String),
    Twice(String),
    Missing(&'static str),
    BadValue { key: &'static str, value: String, allowed: &'static str },
    GeometryWithoutAll,
    AccessesWithoutAll,
}

impl Scope {
    pub fn name(self) -> &'static str {
        match self {
            Scope::Kernel => "kernel",
            Scope::All => "all",
            Scope::User => "user",
        }
    }

    /// Return whether the scope is a whole system, in which a kernel runs.
    pub fn has_kernel(self) -> bool {
        self != Scope::User
    }
}

pub const KEYS: [&str; 6] = ["out", "scope", "events", "symbols", "image", "geometry"];

impl Options {
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Options, OptionError> {
        let mut values: [Option<String>; KEYS.len()] = Default::default();
        for word in words {
            let (key, value) = word.split_once('=').ok_or_else(|| OptionError::NotKeyValue(word.into()))?;
            let place =
                KEYS.iter().position(|key_name| *key_name == key).ok_or_else(|| OptionError::Unknown(key.into()))?;
            if values[place].replace(value.into()).is_some() {
                return Err(OptionError::Twice(key.into()));
            }
        }
        let [out, scope, events, symbols, image, geometry] = values;
        let scope = match required("scope", scope)?.as_str() {
            "kernel" => Scope::Kernel,
            "all" => Scope::All,
            "user" => Scope::User,
            other => return Err(bad("scope", other, "kernel, all, user")),
        };
        let events = required("events", events)?;
        let geometry = match (events.as_str(), geometry) {
            ("edges", None) => None,
            ("edges", Some(_)) => return Err(OptionError::GeometryWithoutAll),
            ("all" | "trace", geometry) => Some(required("geometry", geometry)?.into()),
            (other, _) => return Err(bad("events", other, "edges, all, trace")),
        };
        if scope == Scope::All && geometry.is_none() {
            return Err(OptionError::AccessesWithoutAll);
        }
        let require_for_kernel = |key, value| {
            if scope.has_kernel() { required(key, value).map(Some) } else { Ok(value) }
        };
        let image = require_for_kernel("image", image)?;
        if let Some(digest) = &image
            && !(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
        {
            return Err(bad("image", digest, "a SHA-256 in hex"));
        }
        Ok(Options {
            record: required("out", out)?.into(),
            scope,
            geometry,
            is_traced: events == "trace",
            symbols: require_for_kernel("symbols", symbols)?.map(PathBuf::from),
            image,
        })
    }
}

fn required(key: &'static str, value: Option<String>) -> Result<String, OptionError> {
    value.filter(|value| !value.is_empty()).ok_or(OptionError::Missing(key))
}

fn bad(key: &'static str, value: &str, allowed: &'static str) -> OptionError {
    OptionError::BadValue { key, value: value.into(), allowed }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            OptionError::NotKeyValue(word) => {
                write!(f, "{word}: not an option of the form key=value")
            }
            OptionError::Unknown(key) => {
                write!(f, "unknown option {key}; options: {}", KEYS.join(", "))
            }
            OptionError::Twice(key) => write!(f, "the option {key} is given twice"),
            OptionError::Missing(key) => write!(f, "the option {key}= is missing"),
            OptionError::BadValue { key, value, allowed } => write!(f, "{key}={value}: expected {allowed}"),
            OptionError::AccessesWithoutAll => write!(f, "scope=all requires events=all or events=trace"),
            OptionError::GeometryWithoutAll => write!(f, "geometry= requires events=all or events=trace"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_kernel_is_counted_with_symbols_and_image() {
        let image = format!("image={DIGEST}");
        let options = Options::parse(["out=o", "scope=kernel", "events=edges", "symbols=s", &image]).unwrap();
        assert_eq!(options.record, PathBuf::from("o"));
        assert_eq!((options.scope, options.geometry), (Scope::Kernel, None));
    }

    #[test]
    fn a_whole_system_is_counted_with_symbols_and_geometry() {
        let image = format!("image={DIGEST}");
        let options = Options::parse(["out=o", "scope=all", "events=all", "geometry=g", "symbols=s", &image]).unwrap();
        assert!(options.scope.has_kernel() && options.geometry.is_some());
        let error = Options::parse(["out=o", "scope=all", "events=all", "geometry=g", &image]).unwrap_err();
        assert_eq!(error, OptionError::Missing("symbols"));
    }

    #[test]
    fn a_trace_is_more_than_all_events() {
        let options = Options::parse(["out=o", "scope=user", "events=trace", "geometry=g"]).unwrap();
        assert!(options.is_traced && options.geometry.is_some());
    }

    #[test]
    fn a_program_needs_no_symbols() {
        let options = Options::parse(["out=o", "scope=user", "events=all", "geometry=g"]).unwrap();
        assert_eq!((options.symbols, options.geometry), (None, Some("g".into())));
    }

    #[test]
    fn what_is_missing_doubled_unknown_or_contradictory_is_named() {
        let image = format!("image={DIGEST}");
        for (words, expected) in [
            (vec!["out"], "not an option"),
            (vec!["oot=1"], "unknown option oot"),
            (vec!["out=1", "out=2"], "given twice"),
            (vec!["out=1"], "scope= is missing"),
            (vec!["out=1", "scope=some"], "expected kernel, all, user"),
            (vec!["out=1", "scope=all", "events=edges"], "scope=all requires events=all"),
            (vec!["out=1", "scope=user", "events=some"], "expected edges, all, trace"),
            (vec!["out=1", "scope=user", "events=all"], "geometry= is missing"),
            (vec!["out=1", "scope=user", "events=edges", "geometry=g"], "geometry= requires events=all"),
            (vec!["out=1", "scope=kernel", "events=edges", "symbols=s"], "image= is missing"),
            (vec!["out=1", "scope=kernel", "events=edges", "symbols=s", "image=12"], "SHA-256"),
            (vec!["out=1", "scope=kernel", "events=edges", &image], "symbols= is missing"),
            (vec!["out=", "scope=user", "events=edges"], "out= is missing"),
        ] {
            let error = Options::parse(words.iter().copied()).unwrap_err().to_string();
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }
}
