//! The programs, by kind. Their place in the list is their benchmark's index in a PMU record.

mod atomic;
mod bits;
mod branch;
mod call;
mod chase;
mod checksum;
mod copy;
mod divide;
mod fence;
mod fetch;
mod footprint;
mod hash;
mod list;
mod machine;
mod matrix;
mod multiply;
mod rep;
mod search;
mod sort;
mod stream;
mod stride;
mod string;
mod tlb;
mod tree;

use crate::program::Program;

pub const KINDS: &[(&str, &[Program])] = &[
    ("atomic", atomic::PROGRAMS),
    ("bits", bits::PROGRAMS),
    ("branch", branch::PROGRAMS),
    ("call", call::PROGRAMS),
    ("chase", chase::PROGRAMS),
    ("checksum", checksum::PROGRAMS),
    ("copy", copy::PROGRAMS),
    ("divide", divide::PROGRAMS),
    ("fence", fence::PROGRAMS),
    ("fetch", fetch::PROGRAMS),
    ("footprint", footprint::PROGRAMS),
    ("hash", hash::PROGRAMS),
    ("list", list::PROGRAMS),
    ("machine", machine::PROGRAMS),
    ("matrix", matrix::PROGRAMS),
    ("multiply", multiply::PROGRAMS),
    ("rep", rep::PROGRAMS),
    ("search", search::PROGRAMS),
    ("sort", sort::PROGRAMS),
    ("stream", stream::PROGRAMS),
    ("stride", stride::PROGRAMS),
    ("string", string::PROGRAMS),
    ("tlb", tlb::PROGRAMS),
    ("tree", tree::PROGRAMS),
];

/// Return every program with its kind, in order.
pub fn all() -> impl Iterator<Item = (&'static str, &'static Program)> {
    KINDS.iter().flat_map(|(kind, programs)| programs.iter().map(|program| (*kind, program)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Role;
    use std::collections::HashSet;

    #[test]
    fn every_name_is_there_once_and_needs_no_escaping() {
        let names: HashSet<_> = all().map(|(_, program)| program.name).collect();
        assert_eq!(names.len(), all().count());
        for (kind, Program { name, summary, .. }) in all() {
            assert!([kind, name, summary].iter().all(|text| !text.contains(['"', '\\', '\n'])), "{name}");
        }
    }

    #[test]
    fn every_kind_is_fitted_and_held_out() {
        for (kind, programs) in KINDS {
            for role in [Role::Fit, Role::HeldOut] {
                assert!(programs.iter().any(|program| program.role == role), "{kind} {}", role.name());
            }
        }
    }

    #[test]
    fn there_are_enough_programs() {
        let held_out = all().filter(|(_, program)| program.role == Role::HeldOut).count();
        assert!(all().count() >= 60 && held_out >= 24, "{} programs, {held_out} held out", all().count());
    }

    #[test]
    fn every_program_runs() {
        for (_, program) in all() {
            (program.prepare)()();
        }
    }
}
