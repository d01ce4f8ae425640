//! Lines of JSON.

use std::io::Write;

use serde::Serialize;

pub struct Output<W: Write>(W);

impl<W: Write> Output<W> {
    pub fn new(to: W) -> Output<W> {
        Output(to)
    }

    pub fn line(&mut self, told: &impl Serialize) -> Result<(), String> {
        serde_json::to_writer(&mut self.0, told).map_err(|error| cant_write(error.into()))?;
        self.0.write_all(b"\n").map_err(cant_write)
    }

    pub fn finish(mut self) -> Result<(), String> {
        self.0.flush().map_err(cant_write)
    }
}

fn cant_write(error: std::io::Error) -> String {
    format!("can't write the answer: {error}")
}
