//! One record ⇄ one line of ASCII.

use crate::{Record, VERSION};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;
use std::fmt::Write;

/// Why a line is not a record of this version.
#[derive(Debug)]
pub enum LineError {
    /// A record is ASCII: anything else is a corrupted stream.
    NotAscii,
    NotJson(serde_json::Error),
    /// Missing or another than [`VERSION`].
    Version(Option<Value>),
    /// Unknown type, unknown field, missing field or wrong type of a field.
    NotARecord(serde_json::Error),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            LineError::NotAscii => write!(f, "not ASCII"),
            LineError::NotJson(error) => write!(f, "not a JSON object: {error}"),
            LineError::Version(None) => write!(f, "no version: expected \"v\":{VERSION}"),
            LineError::Version(Some(found)) => write!(f, "version {found}, expected {VERSION}"),
            LineError::NotARecord(error) => write!(f, "not a record: {error}"),
        }
    }
}

impl std::error::Error for LineError {}

#[derive(Serialize)]
struct Versioned<'a> {
    v: u64,
    #[serde(flatten)]
    record: &'a Record,
}

impl Record {
    /// Return the record as a line, with its newline.
    pub fn to_line(&self) -> String {
        let versioned = Versioned { v: VERSION, record: self };
        let mut line = to_ascii(&serde_json::to_string(&versioned).expect("a record holds nothing JSON can't say"));
        line.push('\n');
        line
    }

    /// Return the record in a line, with or without its newline.
    pub fn from_line(line: &str) -> Result<Record, LineError> {
        if !line.is_ascii() {
            return Err(LineError::NotAscii);
        }
        // serde can't flatten and deny unknown fields at once, so the version is taken out by hand.
        let mut object: Map<String, Value> = serde_json::from_str(line).map_err(LineError::NotJson)?;
        match object.remove("v") {
            Some(v) if v == VERSION => serde_json::from_value(Value::Object(object)).map_err(LineError::NotARecord),
            other => Err(LineError::Version(other)),
        }
    }
}

/// Escape what is not ASCII: in JSON such a character can only be inside a string, so escaping it anywhere is right.
pub(crate) fn to_ascii(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len() + 1);
    for character in json.chars() {
        if character.is_ascii() {
            ascii.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(ascii, "\\u{unit:04x}").expect("a String takes everything");
            }
        }
    }
    ascii
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Direction, Lane, Phase, Progress, Stream};

    pub(crate) fn one_of_each() -> Vec<(Record, &'static str)> {
        let hello = |lane, icount_shift, init| Record::Hello {
            agent: "0.1.0".into(),
            kernel: "6.12.117".into(),
            lane,
            icount_shift,
            cpus: 1,
            init,
            indirect_target_selection: icount_shift.map(|_| "Not affected".into()),
            busy_tasks: icount_shift.map(|_| 3),
        };
        vec![
            (
                hello(Lane::usual(true), Some(5), true),
                r#"{"v":1,"type":"hello","agent":"0.1.0","kernel":"6.12.117","lane":"model","icount_shift":5,"cpus":1,"init":true,"indirect_target_selection":"Not affected","busy_tasks":3}"#,
            ),
            (
                hello(Lane::usual(false), None, false),
                r#"{"v":1,"type":"hello","agent":"0.1.0","kernel":"6.12.117","lane":"wall","cpus":1,"init":false}"#,
            ),
            (
                Record::Benchmark {
                    name: "lat_syscall.null".into(),
                    test: "lat_syscall".into(),
                    unit: "instr".into(),
                    direction: Direction::Lower,
                    description: "getppid".into(),
                },
                r#"{"v":1,"type":"benchmark","name":"lat_syscall.null","test":"lat_syscall","unit":"instr","direction":"lower","description":"getppid"}"#,
            ),
            (
                Record::Sample { benchmark: "lat_pipe".into(), iteration: 0, elapsed: 123456, work: 1000 },
                r#"{"v":1,"type":"sample","benchmark":"lat_pipe","iteration":0,"elapsed":123456,"work":1000}"#,
            ),
            (
                Record::Unsupported { benchmark: "lat_tcp".into(), reason: "socket: ENOSYS".into() },
                r#"{"v":1,"type":"unsupported","benchmark":"lat_tcp","reason":"socket: ENOSYS"}"#,
            ),
            (
                Record::Broken { benchmark: "lat_pipe".into(), reason: "killed by signal 7".into() },
                r#"{"v":1,"type":"broken","benchmark":"lat_pipe","reason":"killed by signal 7"}"#,
            ),
            (
                Record::Output { stream: Stream::Stderr, data: b"no\n".into() },
                r#"{"v":1,"type":"output","stream":"stderr","hex":"6e6f0a"}"#,
            ),
            (
                Record::Exited { status: 137, elapsed: 9, user: 2, system: 1, busy_user: 4, busy_system: 3 },
                r#"{"v":1,"type":"exited","status":137,"elapsed":9,"user":2,"system":1,"busy_user":4,"busy_system":3}"#,
            ),
            (
                Record::Left { program: "x".into(), processes: 2 },
                r#"{"v":1,"type":"left","program":"x","processes":2}"#,
            ),
            (
                Record::Step { program: "x".into(), phase: Phase::SetUp, run: 0 },
                r#"{"v":1,"type":"step","program":"x","phase":"set-up","run":0}"#,
            ),
            (
                Record::Step { program: "x".into(), phase: Phase::Report, run: 2 },
                r#"{"v":1,"type":"step","program":"x","phase":"report","run":2}"#,
            ),
            (
                Record::Failed {
                    program: "x".into(),
                    phase: Phase::Command,
                    round: 3,
                    status: 1,
                    elapsed: 9,
                    tail: b"no\n".into(),
                },
                r#"{"v":1,"type":"failed","program":"x","phase":"command","round":3,"status":1,"elapsed":9,"hex":"6e6f0a"}"#,
            ),
            (
                Record::Tally {
                    program: "x".into(),
                    rounds: 5,
                    failures: 1,
                    elapsed: 90,
                    longest: 30,
                    progress: Progress::LeftOut,
                },
                r#"{"v":1,"type":"tally","program":"x","rounds":5,"failures":1,"elapsed":90,"longest":30,"progress":"left-out"}"#,
            ),
            (
                Record::Memory {
                    elapsed: 9,
                    at_rest: true,
                    kb: [("Slab".into(), 4)].into(),
                    tasks: Some(60),
                    files: None,
                    tainted: Some(0),
                },
                r#"{"v":1,"type":"memory","elapsed":9,"at_rest":true,"kb":{"Slab":4},"tasks":60,"tainted":0}"#,
            ),
            (Record::End { records: 7 }, r#"{"v":1,"type":"end","records":7}"#),
        ]
    }

    #[test]
    fn every_record_is_written_as_documented_and_read_back() {
        for (record, line) in one_of_each() {
            assert_eq!(record.to_line(), format!("{line}\n"));
            assert_eq!(Record::from_line(line).unwrap(), record);
        }
    }

    #[test]
    fn an_unknown_field_type_or_version_is_refused() {
        for (line, expected) in [
            (r#"{"v":1,"type":"end","records":7,"extra":1}"#, "unknown field `extra`"),
            (r#"{"v":1,"type":"end"}"#, "missing field `records`"),
            (r#"{"v":1,"type":"farewell"}"#, "unknown variant `farewell`"),
            (r#"{"v":2,"type":"end","records":7}"#, "version 2, expected 1"),
            (r#"{"type":"end","records":7}"#, "no version"),
            (r#"{"v":1,"type":"end","reco"#, "not a JSON object"),
            ("{\"v\":1,\"type\":\"broken\",\"benchmark\":\"\u{e9}\",\"reason\":\"\"}", "not ASCII"),
        ] {
            let error = Record::from_line(line).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn a_character_outside_ascii_is_escaped_and_survives() {
        let record = Record::Broken { benchmark: "x".into(), reason: "caf\u{e9} \u{1f427}".into() };
        let line = record.to_line();
        assert!(line.is_ascii() && line.contains(r"caf\u00e9 \ud83d\udc27"), "{line}");
        assert_eq!(Record::from_line(&line).unwrap(), record);
    }
}
