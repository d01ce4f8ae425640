//! The lints, one file each. A lint is a row of the table.

mod alternatives;
mod always_inline;
mod costly_instruction;
mod lock_on_stack_copy;
mod simd;
#[cfg(test)]
mod tests;
mod unknown_call;

use crate::binary::Binary;
use crate::disassembly::text_at;
use crate::finding::{Finding, Level};
use crate::lines::Lines;
use crate::settings::Settings;
use crate::shared::Shared;

pub struct Lint {
    pub name: &'static str,
    pub level: Level,
    /// It says nothing of a file in which it isn't known where functions begin.
    pub needs_functions: bool,
    run: fn(&Look) -> Vec<Place>,
}

pub const LINTS: &[Lint] = &[
    Lint { name: "lock-on-stack-copy", level: Level::Error, needs_functions: true, run: lock_on_stack_copy::run },
    Lint { name: "always-inline-emitted", level: Level::Warning, needs_functions: true, run: always_inline::run },
    Lint { name: "simd-in-kernel", level: Level::Error, needs_functions: true, run: simd::run },
    Lint { name: "alternatives", level: Level::Error, needs_functions: false, run: alternatives::run },
    Lint { name: "unknown-call", level: Level::Error, needs_functions: false, run: unknown_call::run },
    Lint { name: "costly-instruction", level: Level::Note, needs_functions: true, run: costly_instruction::run },
];

/// What a lint has before it.
pub struct Look<'a, 'data> {
    pub binary: &'a Binary<'data>,
    pub lines: Lines<'a, 'data>,
    pub settings: &'a Settings,
    pub shared: &'a Shared,
    /// Position of this file in `shared`.
    pub file: usize,
}

/// What a lint gives: an address, and what is wrong there.
pub struct Place {
    pub address: u64,
    /// The finding is about the instruction at the address.
    pub is_instruction: bool,
    /// Nothing that is known to be wrong: what the lint can't tell is at most a note.
    pub is_unsure: bool,
    pub message: String,
    /// As in a finding.
    pub executions: Option<f64>,
    pub cycles: Option<f64>,
}

/// Findings of all files: who reads them has them all in memory.
pub const MOST_FINDINGS: usize = 100_000;

/// What one lint gives of one file. What comes after one more than `MOST_FINDINGS` is dropped.
#[derive(Default)]
pub struct Places(pub Vec<Place>);

impl Places {
    pub fn push(&mut self, place: Place) {
        if self.0.len() <= MOST_FINDINGS {
            self.0.push(place);
        }
    }
}

impl Place {
    pub fn instruction(address: u64, message: String) -> Place {
        Place { address, is_instruction: true, is_unsure: false, message, executions: None, cycles: None }
    }

    pub fn unsure(address: u64, message: String) -> Place {
        Place { is_instruction: false, is_unsure: true, ..Place::instruction(address, message) }
    }
}

/// Bytes of the name of a source: a path is no longer (PATH_MAX).
const LONGEST_SOURCE: usize = 4096;

/// Return everything that one lint finds in one file.
pub fn findings<'a>(lint: &'a Lint, look: &'a Look, file: &'a str) -> impl Iterator<Item = Finding> + 'a {
    (lint.run)(look).into_iter().map(move |place| finding(lint, look, place, file))
}

fn finding(lint: &Lint, look: &Look, place: Place, file: &str) -> Finding {
    let binary = look.binary;
    let function = binary.function_at(place.address).map(|at| &binary.functions[at]);
    let line = look.lines.find(place.address).filter(|(source, _)| source.len() <= LONGEST_SOURCE);
    let instruction = function.filter(|_| place.is_instruction).map(|_| text_at(binary, place.address));
    Finding {
        lint: lint.name,
        level: if place.is_unsure { Level::Note } else { lint.level },
        file: file.to_owned(),
        source: line.as_ref().map(|(source, _)| source.clone()),
        line: line.map(|(_, line)| line),
        function: function.map_or_else(String::new, |function| function.name.to_owned()),
        address: format!("{:#x}", binary.shown_address(place.address)),
        section: binary.section_at(place.address).map_or_else(String::new, |section| section.name.to_owned()),
        instruction: instruction.unwrap_or_default(),
        message: place.message,
        executions: place.executions,
        cycles: place.cycles,
    }
}
