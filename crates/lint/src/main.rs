//! kdyno-lint: reads its settings from stdin, as one JSON object (see `Settings`), and writes one line of JSON for each
//! thing that it has to tell (see `Told`).

#![forbid(unsafe_code)]

use std::io::{Read, Write};
use std::process::ExitCode;

use kdyno_lint::{LINTS, Settings, Told, lint_files};

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
    lint_files(&settings, &mut |told| {
        let line = serde_json::to_string(&told).map_err(std::io::Error::from);
        let written = line.and_then(|line| writeln!(output, "{line}"));
        // Whoever shows progress wants to know at once.
        let flushed = if matches!(told, Told::Begun { .. }) { output.flush() } else { Ok(()) };
        failure = failure.take().or(written.err()).or(flushed.err());
    });
    failure = failure.or(output.flush().err());
    failure.map_or(Ok(()), |error| Err(format!("can't write the findings: {error}")))
}
