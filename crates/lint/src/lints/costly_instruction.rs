//! costly-instruction: instructions that the chosen CPU family is bad at. One finding for each rule and function, with
//! the count, for the functions that have most of them.

use super::{Look, Place, instructions};

/// Functions per rule and file: a kernel may have thousands, and those with most are what to look at.
const MOST: usize = 10;

pub fn run(look: &Look) -> Vec<Place> {
    let rules = &look.settings.costly;
    let mut counts: Vec<Vec<Count>> = vec![Vec::new(); rules.len()];
    let by_mnemonic = by_mnemonic(look);
    if rules.is_empty() {
        return Vec::new();
    }
    for function in &look.binary.functions {
        for instruction in instructions(look.binary, function) {
            for &rule in &by_mnemonic[instruction.mnemonic() as usize] {
                if rules[rule].form.takes(&instruction) {
                    match counts[rule].last_mut().filter(|count| count.function == function.start) {
                        Some(count) => count.number += 1,
                        None => {
                            counts[rule].push(Count { function: function.start, first: instruction.ip(), number: 1 })
                        }
                    }
                }
            }
        }
    }
    let mut places = Vec::new();
    for (rule, mut counts) in rules.iter().zip(counts) {
        counts.sort_by_key(|count| (std::cmp::Reverse(count.number), count.function));
        let (functions, sum) = (counts.len(), counts.iter().map(|count| count.number).sum::<u64>());
        for Count { first, number, .. } in counts.into_iter().take(MOST) {
            let Rule { name, cost, source, advice, .. } = rule;
            let all = format!("{sum} in {functions} functions of this file");
            places
                .push(Place::instruction(first, format!("{name}, {number} here, {all}: {cost} ({source}); {advice}")));
        }
    }
    places
}

use crate::costly::Rule;

#[derive(Clone)]
struct Count {
    function: u64,
    /// Address of the first one.
    first: u64,
    number: u64,
}

/// The rules that each mnemonic has, by its number.
fn by_mnemonic(look: &Look) -> Vec<Vec<usize>> {
    let mut table = Vec::new();
    for mnemonic in iced_x86::Mnemonic::values() {
        let name = format!("{mnemonic:?}").to_lowercase();
        let has = |rule: &Rule| rule.mnemonics.contains(&name);
        let rules = look.settings.costly.iter().enumerate().filter(|(_, rule)| has(rule));
        table.push(rules.map(|(place, _)| place).collect());
    }
    table
}
