//! kdyno-blocks: reads functions from stdin, a line of JSON each (see `Function`), and writes for each a line with the
//! order of its blocks: `[0,2,1]`.

#![forbid(unsafe_code)]

mod chains;
mod function;
#[cfg(test)]
mod fuzz;
mod score;

use std::io::{BufRead, BufWriter, Write};
use std::process::ExitCode;

use crate::function::Function;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("kdyno-blocks: error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut output = BufWriter::new(std::io::stdout().lock());
    for (index, line) in std::io::stdin().lock().lines().enumerate() {
        let at_line = |why: String| format!("line {} of stdin: {why}", index + 1);
        let line = line.map_err(|error| at_line(error.to_string()))?;
        let function: Function =
            serde_json::from_str(&line).map_err(|error| at_line(error.to_string()))?;
        function.check().map_err(at_line)?;
        let order = chains::ordered(&function);
        writeln!(output, "{order:?}")
            .map_err(|error| format!("can't write the orders: {error}"))?;
    }
    output
        .flush()
        .map_err(|error| format!("can't write the orders: {error}"))
}
