//! A pass that the user added: a program that reads assembler text and writes assembler text.

use super::Changed;
use crate::ccd::run::{Failure, filtered};

/// Return the text after a program; a text that differs is a change.
pub fn through_program(name: &str, command: &[String], text: &[u8]) -> Result<Option<Changed>, Failure> {
    let words: Vec<_> = command.iter().map(Into::into).collect();
    let after = filtered(&words, text).map_err(|failure| failure.of(&format!("the pass {name}")))?;
    if after.is_empty() && !text.is_empty() {
        return Err(Failure::Trouble(format!("the pass {name} wrote nothing")));
    }
    Ok((after != text).then_some(Changed { text: after, changes: 1 }))
}
