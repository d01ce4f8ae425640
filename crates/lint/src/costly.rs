//! Rules about instructions that a CPU family is bad at. The data is kdyno's; this says which instructions a rule means.

use iced_x86::{Instruction, Mnemonic, OpKind};
use serde::Deserialize;

use crate::alternative::REPLACEMENTS;
use crate::binary::{Binary, Function};
use crate::disassembly::instructions;

/// Functions that are reported of each rule: a kernel may have thousands, and those with most are what to look at.
const MOST: usize = 10;

/// One rule of src/kdyno/data/costly.toml.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub name: String,
    /// The mnemonics as disassemblers write them, in lower case.
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
    /// A base, an index and a displacement, also one of 0, as rbp and r13 need as a base.
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

/// What there is of one rule in all files.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    pub all: u64,
    /// The functions with most, in order.
    pub most: Vec<Count>,
}

/// In one function.
#[derive(Debug, Clone)]
pub struct Count {
    pub number: u64,
    pub file: usize,
    /// Address of the first one.
    pub first: u64,
}

/// Add the counts of one file, by rule.
pub fn count(rules: &[Rule], binary: &Binary, file: usize, tallies: &mut Vec<Tally>) {
    tallies.resize(rules.len(), Tally::default());
    let by_mnemonic = by_mnemonic(rules);
    // A replacement of an alternative is there for the CPUs that are good at it.
    let is_kept = |function: &&Function| binary.sections[function.section].name != REPLACEMENTS;
    for function in binary.functions.iter().filter(is_kept) {
        let mut counts: Vec<Option<Count>> = vec![None; rules.len()];
        for instruction in instructions(binary, function) {
            for &rule in &by_mnemonic[instruction.mnemonic() as usize] {
                if rules[rule].form.takes(&instruction) {
                    counts[rule].get_or_insert(Count { number: 0, file, first: instruction.ip() }).number += 1;
                }
            }
        }
        for (tally, count) in tallies.iter_mut().zip(counts) {
            let Some(count) = count else { continue };
            tally.all += count.number;
            let place = tally.most.partition_point(|other| other.number >= count.number);
            tally.most.insert(place, count);
            tally.most.truncate(MOST);
        }
    }
}

/// Return the rules that each mnemonic has, by its number.
fn by_mnemonic(rules: &[Rule]) -> Vec<Vec<usize>> {
    let names = Mnemonic::values().map(|mnemonic| format!("{mnemonic:?}").to_lowercase());
    names.map(|name| (0..rules.len()).filter(|rule| rules[*rule].mnemonics.contains(&name)).collect()).collect()
}
