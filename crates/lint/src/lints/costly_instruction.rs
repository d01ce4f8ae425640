//! costly-instruction: instructions that the chosen CPU family is bad at. One finding for each rule and function, with
//! the count, for the functions that have most of them.

use super::{Look, Place, Places};
use crate::costly::Rule;

pub fn run(look: &Look) -> Vec<Place> {
    let rules = look.settings.costly.iter().zip(look.shared.costly());
    let mut places = Places::default();
    for (rule, tally) in rules {
        for most in tally.most.iter().filter(|most| most.file == look.file) {
            let Rule { name, cost, source, advice, .. } = rule;
            let (here, all) = (most.number, tally.all);
            let message = format!("{name}, {here} of {all}: {cost} ({source}); {advice}");
            places.push(Place::instruction(most.first, message));
        }
    }
    places.0
}
