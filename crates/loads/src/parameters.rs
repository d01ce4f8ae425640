//! What a load can be asked for: a table of settings, and the values that were chosen.

use crate::area::Advice;
use crate::failure::{Failure, SEE_HELP};
use kdyno_tool::arguments::{BYTES, scaled};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

#[derive(Debug)]
pub struct Setting {
    /// Without the two hyphens.
    pub name: &'static str,
    pub kind: Kind,
    /// None: it has to be given.
    pub default: Option<&'static str>,
}

#[derive(Debug)]
pub enum Kind {
    /// A whole number within bounds.
    Number {
        least: u64,
        most: u64,
    },
    /// A power of two within bounds.
    PowerOfTwo {
        least: u64,
        most: u64,
    },
    /// A whole number within bounds, with a unit of K, M or G (powers of 1024) if there is one.
    Bytes {
        least: u64,
        most: u64,
    },
    Word(&'static [&'static str]),
    Text,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    Number(u64),
    Text(String),
}

/// The parameters in the order of the settings.
#[derive(Debug, PartialEq)]
pub struct Parameters(Vec<(&'static str, Value)>);

pub const REPEAT: Setting =
    Setting { name: "repeat", kind: Kind::Number { least: 1, most: 10_000 }, default: Some("1") };
pub const THREADS: Setting =
    Setting { name: "threads", kind: Kind::Number { least: 1, most: 1024 }, default: Some("1") };
pub const PROCESSES: Setting =
    Setting { name: "processes", kind: Kind::Number { least: 1, most: 1024 }, default: Some("1") };
pub const ADVISE: Setting =
    Setting { name: "advise", kind: Kind::Word(&["nothing", "huge", "nohuge"]), default: Some("nothing") };

impl Setting {
    pub fn read(&self, text: &str) -> Result<Value, Failure> {
        let refuse = |expectation: String| {
            Failure::of_usage(format!("--{} takes {expectation}, not '{text}'", self.name), SEE_HELP)
        };
        let in_range = |number: Option<u64>, least: u64, most: u64| number.filter(|n| (least..=most).contains(n));
        match self.kind {
            Kind::Number { least, most } => in_range(text.parse().ok(), least, most)
                .map(Value::Number)
                .ok_or_else(|| refuse(format!("a whole number from {least} to {most}"))),
            Kind::PowerOfTwo { least, most } => in_range(text.parse().ok(), least, most)
                .filter(|number| number.is_power_of_two())
                .map(Value::Number)
                .ok_or_else(|| refuse(format!("a power of two from {least} to {most}"))),
            Kind::Bytes { least, most } => in_range(scaled(text, BYTES), least, most)
                .map(Value::Number)
                .ok_or_else(|| refuse(format!("bytes, with K, M or G if you like, from {least} to {most}"))),
            Kind::Word(words) if words.contains(&text) => Ok(Value::Text(text.into())),
            Kind::Word(words) => Err(refuse(words.join(", "))),
            Kind::Text => Ok(Value::Text(text.into())),
        }
    }
}

impl Parameters {
    pub fn new(values: Vec<(&'static str, Value)>) -> Parameters {
        Parameters(values)
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// Return a number; the load's own table has to have a setting of that name.
    pub fn number(&self, name: &str) -> usize {
        match self.get(name) {
            Some(Value::Number(number)) => *number as usize,
            other => panic!("no number {name}: {other:?}"),
        }
    }

    /// Return a word or a text; the load's own table has to have a setting of that name.
    pub fn text_of(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Value::Text(text)) => text,
            other => panic!("no text {name}: {other:?}"),
        }
    }

    /// Return the number of processes: 1 where a load has no such setting.
    pub fn processes(&self) -> usize {
        if self.get(PROCESSES.name).is_some() { self.number(PROCESSES.name) } else { 1 }
    }

    pub fn advice(&self) -> Advice {
        match self.text_of(ADVISE.name) {
            "huge" => Advice::HugePages,
            "nohuge" => Advice::NoHugePages,
            _ => Advice::Nothing,
        }
    }

    /// Return the parameters as text: ` size=1024 repeat=3`
    pub fn text(&self) -> String {
        let format_value = |value: &Value| match value {
            Value::Number(number) => number.to_string(),
            Value::Text(text) => text.clone(),
        };
        self.0.iter().map(|(name, value)| format!(" {name}={}", format_value(value))).collect()
    }
}

impl Serialize for Parameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_out_of_bounds_is_refused_with_the_bounds() {
        let setting = Setting { name: "size", kind: Kind::PowerOfTwo { least: 2, most: 64 }, default: None };
        assert_eq!(setting.read("16"), Ok(Value::Number(16)));
        for text in ["1", "24", "128", "x"] {
            assert!(setting.read(text).unwrap_err().to_string().contains("a power of two from 2 to 64"), "{text}");
        }
    }
}
