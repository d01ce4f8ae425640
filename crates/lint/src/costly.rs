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
    /// The cycles that the better sequence saves at most, each time; None where that wasn't measured.
    #[serde(default)]
    pub saves: Option<f64>,
}

/// Which operands make it costly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    #[default]
    Any,
    /// The operand is 64 bits wide.
    Wide,
    /// The operand is 32 bits wide.
    Half,
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
            Form::Wide => operand_bytes(instruction) == 8,
            Form::Half => operand_bytes(instruction) == 4,
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

/// Return the size of the first operand.
fn operand_bytes(instruction: &Instruction) -> usize {
    match instruction.op0_kind() {
        OpKind::Register => instruction.op0_register().size(),
        _ => instruction.memory_size().size(),
    }
}

/// From each address on, how often an instruction is executed; in the order of addresses.
pub type Executions = [(u64, f64)];

/// What there is of one rule in all files.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    pub all: u64,
    /// Of all.
    pub executions: f64,
    /// The functions with most, in order: with most executions, where these are known.
    pub most: Vec<Count>,
}

/// In one function.
#[derive(Debug, Clone)]
pub struct Count {
    pub number: u64,
    pub executions: f64,
    pub file: usize,
    /// Address of the one that is executed most, or of the first one.
    pub address: u64,
    /// The executions of that one.
    most: f64,
}

impl Count {
    /// Add one instruction.
    fn add(&mut self, address: u64, executions: f64) {
        if self.number == 0 || executions > self.most {
            (self.address, self.most) = (address, executions);
        }
        self.number += 1;
        self.executions += executions;
    }
}

/// Add the counts of one file, by rule. With executions, a function that executes none isn't among those with most.
pub fn count(rules: &[Rule], binary: &Binary, file: usize, executions: Option<&Executions>, tallies: &mut Vec<Tally>) {
    tallies.resize(rules.len(), Tally::default());
    let by_mnemonic = by_mnemonic(rules);
    // A replacement of an alternative is there for the CPUs that are good at it.
    let is_kept = |function: &&Function| binary.sections[function.section].name != REPLACEMENTS;
    for function in binary.functions.iter().filter(is_kept) {
        let none = Count { number: 0, executions: 0.0, file, address: 0, most: 0.0 };
        let mut counts = vec![none; rules.len()];
        for instruction in instructions(binary, function) {
            for &rule in &by_mnemonic[instruction.mnemonic() as usize] {
                if rules[rule].form.takes(&instruction) {
                    let times = executions.map_or(0.0, |executions| times_at(executions, instruction.ip()));
                    counts[rule].add(instruction.ip(), times);
                }
            }
        }
        for (tally, count) in tallies.iter_mut().zip(counts) {
            tally.all += count.number;
            tally.executions += count.executions;
            let is_listed = if executions.is_some() { count.executions > 0.0 } else { count.number > 0 };
            if is_listed {
                let order = |count: &Count| (count.executions, count.number);
                let place = tally.most.partition_point(|other| order(other) >= order(&count));
                tally.most.insert(place, count);
                tally.most.truncate(MOST);
            }
        }
    }
}

fn times_at(executions: &Executions, address: u64) -> f64 {
    let after = executions.partition_point(|(start, _)| *start <= address);
    after.checked_sub(1).map_or(0.0, |at| executions[at].1)
}

/// Return the rules that each mnemonic has, by its number.
fn by_mnemonic(rules: &[Rule]) -> Vec<Vec<usize>> {
    let names = Mnemonic::values().map(|mnemonic| format!("{mnemonic:?}").to_lowercase());
    names.map(|name| (0..rules.len()).filter(|rule| rules[*rule].mnemonics.contains(&name)).collect()).collect()
}
