//! Instructions of a binary, and as text.

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, NasmFormatter};

use crate::binary::{Binary, Function, Target};

/// Return the instructions of a function, one after the other; a byte that starts none is an invalid one.
pub fn instructions<'data>(
    binary: &Binary<'data>,
    function: &Function,
) -> impl Iterator<Item = Instruction> + use<'data> {
    Decoder::with_ip(64, binary.code(function), function.start, DecoderOptions::NONE).into_iter()
}

/// Return the instruction that starts at an address in code; a branch with a relocation goes to the name of that.
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

/// Return an instruction as text: operands in Intel's order, numbers as C has them.
pub fn text(instruction: &Instruction) -> String {
    let mut formatter = NasmFormatter::new();
    formatter.options_mut().set_hex_prefix("0x");
    formatter.options_mut().set_hex_suffix("");
    formatter.options_mut().set_uppercase_hex(false);
    let mut written = String::new();
    formatter.format(instruction, &mut written);
    written
}
