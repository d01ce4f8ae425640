//! Passes: what mends assembler text on its way from a compiler to GNU as.
//!
//! A pass that is built in sees the lines that compilers write; what stands between #APP and #NO_APP is the kernel's own
//! inline assembler, and stays. Lines that a pass isn't about stay byte for byte.

mod common;
mod foreign;
mod program;
mod used;

pub use program::through_program;

/// A text after a pass, and how many symbols or sections the pass changed.
#[derive(Debug, PartialEq)]
pub struct Changed {
    pub text: Vec<u8>,
    pub changes: usize,
}

/// A pass of ccd's own. It gives `None` where it has nothing to change.
pub struct BuiltIn {
    pub name: &'static str,
    pub apply: fn(&[u8]) -> Option<Changed>,
}

pub const BUILT_IN: [BuiltIn; 3] = [common::PASS, used::PASS, foreign::PASS];

/// A line of assembler text, with what the passes ask of it.
struct Line<'a> {
    /// All of it, with its end of line.
    whole: &'a [u8],
    /// The first word; a directive starts with a dot.
    word: &'a [u8],
    /// What follows the first word.
    rest: &'a [u8],
    is_inline: bool,
}

/// Return the lines of a text.
fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut is_inline = false;
    text.split_inclusive(|byte| *byte == b'\n').map(move |whole| {
        let line = whole.trim_ascii();
        match line {
            b"#APP" => is_inline = true,
            b"#NO_APP" => is_inline = false,
            _ => {}
        }
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        Line { whole, word: &line[..end], rest: line[end..].trim_ascii_start(), is_inline }
    })
}

/// Return the operands of a directive, without a comment; commas in quotes separate nothing.
fn operands(rest: &[u8]) -> Vec<&[u8]> {
    let mut is_quoted = false;
    let end = rest.iter().position(|byte| {
        is_quoted ^= *byte == b'"';
        *byte == b'#' && !is_quoted
    });
    let rest = &rest[..end.unwrap_or(rest.len())];
    is_quoted = false;
    let parts = rest.split(|byte| {
        is_quoted ^= *byte == b'"';
        *byte == b',' && !is_quoted
    });
    parts.map(<[u8]>::trim_ascii).collect()
}

/// Return the section that a line switches to.
fn section<'a>(line: &Line<'a>) -> Option<&'a [u8]> {
    match line.word {
        b".text" | b".data" | b".bss" => Some(line.word),
        b".section" | b".pushsection" => operands(line.rest).first().map(|name| unquoted(name)),
        _ => None,
    }
}

/// Where in its sections a text is. Inline assembler leaves the section that it found.
struct Place<'a> {
    current: &'a [u8],
    previous: &'a [u8],
    pushed: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Place<'a> {
    fn new() -> Self {
        Self { current: b".text", previous: b".text", pushed: Vec::new() }
    }

    /// Follow a line; returns whether it switches sections.
    fn follow(&mut self, line: &Line<'a>) -> bool {
        if line.is_inline {
            return false;
        }
        if line.word == b".pushsection" {
            self.pushed.push((self.current, self.previous));
        }
        if let Some(name) = section(line) {
            (self.previous, self.current) = (self.current, name);
        } else if line.word == b".previous" {
            std::mem::swap(&mut self.current, &mut self.previous);
        } else if line.word == b".popsection" {
            (self.current, self.previous) = self.pushed.pop().unwrap_or((b".text", b".text"));
        } else {
            return false;
        }
        true
    }
}

fn unquoted(name: &[u8]) -> &[u8] {
    name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name)
}
