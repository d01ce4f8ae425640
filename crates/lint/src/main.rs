//! kdyno-lint: reads its settings from stdin, as one JSON object (see `Settings`), and writes one line of JSON for each
//! finding and for each file that it can't read.

#![forbid(unsafe_code)]

use std::io::{Read, Write};
use std::process::ExitCode;

use kdyno_lint::{LINTS, Settings, lint_files};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("kdyno-lint: error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| format!("can't read the settings: {error}"))?;
    let settings: Settings = serde_json::from_str(&text).map_err(|error| format!("the settings on stdin: {error}"))?;
    if let Some(unknown) = settings.only.iter().find(|name| LINTS.iter().all(|lint| lint.name != **name)) {
        let known: Vec<&str> = LINTS.iter().map(|lint| lint.name).collect();
        return Err(format!("there is no lint {unknown}; there are {}", known.join(", ")));
    }
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    let mut failure = None;
    lint_files(&settings, &mut |result| {
        let line = match &result {
            Ok(finding) => serde_json::to_string(finding),
            Err(refused) => serde_json::to_string(refused),
        };
        let written = line.map_err(std::io::Error::from).and_then(|line| writeln!(output, "{line}"));
        failure = failure.take().or(written.err());
    });
    failure = failure.or(output.flush().err());
    failure.map_or(Ok(()), |error| Err(format!("can't write the findings: {error}")))
}
