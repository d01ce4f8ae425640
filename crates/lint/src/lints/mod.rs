//! The lints, one file each. A lint is a row of the table.

mod alternatives;
mod always_inline;
mod costly_instruction;
mod lock_on_stack_copy;
mod simd;
#[cfg(test)]
mod tests;
mod unknown_call;

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, NasmFormatter};

use crate::binary::{Binary, Function, Target};
use crate::finding::{Finding, Level};
use crate::settings::Settings;
use crate::shared::Shared;

pub struct Lint {
    pub name: &'static str,
    pub level: Level,
    run: fn(&Look) -> Vec<Place>,
}

pub const LINTS: &[Lint] = &[
    Lint { name: "lock-on-stack-copy", level: Level::Error, run: lock_on_stack_copy::run },
    Lint { name: "always-inline-emitted", level: Level::Warning, run: always_inline::run },
    Lint { name: "simd-in-kernel", level: Level::Error, run: simd::run },
    Lint { name: "alternatives", level: Level::Error, run: alternatives::run },
    Lint { name: "unknown-call", level: Level::Error, run: unknown_call::run },
    Lint { name: "costly-instruction", level: Level::Note, run: costly_instruction::run },
];

/// What a lint has before it.
pub struct Look<'a, 'data> {
    pub binary: &'a Binary<'data>,
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
    pub message: String,
}

impl Place {
    pub fn instruction(address: u64, message: String) -> Place {
        Place { address, is_instruction: true, message }
    }
}

/// Everything that one lint finds in one file.
pub fn findings(lint: &Lint, look: &Look, file: &str) -> Vec<Finding> {
    (lint.run)(look).into_iter().map(|place| finding(lint, look.binary, place, file)).collect()
}

fn finding(lint: &Lint, binary: &Binary, place: Place, file: &str) -> Finding {
    let function = binary.function_at(place.address).map(|at| &binary.functions[at]);
    let line = binary.line(place.address);
    let instruction = function.filter(|_| place.is_instruction).map(|_| text_at(binary, place.address));
    Finding {
        lint: lint.name,
        level: lint.level,
        file: file.to_owned(),
        source: line.as_ref().map(|(source, _)| source.clone()),
        line: line.map(|(_, line)| line),
        function: function.map_or_else(String::new, |function| function.name.to_owned()),
        address: format!("{:#x}", binary.shown_address(place.address)),
        section: binary.section_at(place.address).map_or_else(String::new, |section| section.name.to_owned()),
        instruction: instruction.unwrap_or_default(),
        message: place.message,
    }
}

/// The instructions of a function, one after the other; a byte that starts none is an invalid one.
pub fn instructions<'data>(
    binary: &Binary<'data>,
    function: &Function,
) -> impl Iterator<Item = Instruction> + use<'data> {
    Decoder::with_ip(64, binary.code(function), function.start, DecoderOptions::NONE).into_iter()
}

/// The instruction that starts at an address in code; a branch with a relocation goes to the name of that.
pub fn text_at(binary: &Binary, address: u64) -> String {
    let after = binary.sections.partition_point(|section| section.base <= address);
    let Some((place, section)) = after.checked_sub(1).map(|place| (place, &binary.sections[place])) else {
        return String::new();
    };
    let bytes = section.bytes.get((address - section.base) as usize..).unwrap_or_default();
    let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    let relocation = binary.relocation_in(place, address, instruction.len() as u64);
    let name = match relocation.map(|relocation| binary.pointed_at(relocation, 4)) {
        Some(Target::Undefined(name)) => Some(name),
        Some(Target::Address(target)) => binary.function_at(target).map(|function| binary.functions[function].name),
        _ => None,
    };
    match (text(&instruction), name) {
        (written, Some(name)) if instruction.near_branch_target() != 0 => {
            let mnemonic = written.rsplit_once(' ').map_or(written.as_str(), |(mnemonic, _)| mnemonic);
            format!("{mnemonic} {name}")
        }
        (written, _) => written,
    }
}

/// An instruction as text: operands in Intel's order, numbers as C has them.
pub fn text(instruction: &Instruction) -> String {
    let mut formatter = NasmFormatter::new();
    formatter.options_mut().set_hex_prefix("0x");
    formatter.options_mut().set_hex_suffix("");
    formatter.options_mut().set_uppercase_hex(false);
    let mut written = String::new();
    formatter.format(instruction, &mut written);
    written
}
