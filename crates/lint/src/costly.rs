//! Rules about instructions that a CPU family is bad at. The data is kdyno's; this says which instructions a rule means.

use iced_x86::{Instruction, OpKind};
use serde::Deserialize;

/// One rule of src/kdyno/data/costly.toml.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub name: String,
    /// As disassemblers write them, in lower case.
    pub mnemonics: Vec<String>,
    #[serde(default)]
    pub form: Form,
    /// What it costs, where that is from, and what is better.
    pub cost: String,
    pub source: String,
    pub advice: String,
}

/// Which operands make it costly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    #[default]
    Any,
    /// The operand is 64 bits wide.
    Wide,
    /// The first operand is memory and the second a register: a bit anywhere after the address.
    BitOfMemory,
    /// A base, an index and a displacement.
    ThreeParts,
    /// With rep, repe or repne.
    Repeated,
}

impl Form {
    pub fn takes(self, instruction: &Instruction) -> bool {
        match self {
            Form::Any => true,
            Form::Wide => match instruction.op0_kind() {
                OpKind::Register => instruction.op0_register().is_gpr64(),
                _ => instruction.memory_size().size() == 8,
            },
            Form::BitOfMemory => {
                instruction.op0_kind() == OpKind::Memory
                    && instruction.op1_kind() == OpKind::Register
                    && !instruction.has_lock_prefix()
            }
            Form::ThreeParts => {
                let has = |register| register != iced_x86::Register::None;
                has(instruction.memory_base()) && has(instruction.memory_index()) && instruction.memory_displ_size() > 0
            }
            Form::Repeated => instruction.has_rep_prefix() || instruction.has_repne_prefix(),
        }
    }
}
