//! costly-instruction: instructions that the chosen CPU family is bad at. One finding for each rule and function, with
//! the count, for the functions that have most of them, or execute most of them.

use super::{Look, Place, Places};
use crate::costly::Rule;

pub fn run(look: &Look) -> Vec<Place> {
    let rules = look.settings.costly.iter().zip(look.shared.costly());
    let is_load_known = look.settings.executions.is_some();
    let mut places = Places::default();
    for (rule, tally) in rules {
        for most in tally.most.iter().filter(|most| most.file == look.file) {
            let Rule { name, cost, source, advice, .. } = rule;
            let (here, all) = (most.number, tally.all);
            let executions = is_load_known.then_some(most.executions);
            let cycles = executions.zip(rule.saves).map(|(times, saves)| times * saves);
            let load = executions.map_or_else(String::new, |times| {
                let (times, all) = (figures(times), figures(tally.executions));
                let saved = cycles.map_or_else(String::new, |cycles| format!(", up to {} cycles", figures(cycles)));
                format!(", {times} of {all} executions per million instructions{saved}")
            });
            let message = format!("{name}, {here} of {all}{load}: {cost} ({source}); {advice}");
            places.push(Place { executions, cycles, ..Place::instruction(most.address, message) });
        }
    }
    places.0
}

/// Return a number with two figures or more, if it isn't tiny.
fn figures(number: f64) -> String {
    let places = match number {
        100.0.. => 0,
        1.0..100.0 => 1,
        _ => 2,
    };
    format!("{number:.places$}")
}
