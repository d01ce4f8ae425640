//! lock-on-stack-copy: an atomic instruction whose operand is a copy on the stack.
//!
//! The value was loaded from other memory and stored into a slot, and the slot is what is changed atomically: the
//! original stays as it was, or is written back without a lock. A compiler does so if inline assembler is given a
//! value where it should have been given the memory.

use super::{Look, Place};
use crate::disassembly::{instructions, text_at};
use crate::flow::{atomics_on_copies, is_atomic};

pub fn run(look: &Look) -> Vec<Place> {
    let binary = look.binary;
    let mut places = Vec::new();
    for function in &binary.functions {
        if !instructions(binary, function).any(|instruction| is_atomic(&instruction)) {
            continue;
        }
        for atomic in atomics_on_copies(binary, function) {
            let load = text_at(binary, atomic.loaded_at);
            let at = binary.shown_address(atomic.loaded_at);
            let message =
                format!("atomic on a copy on the stack: the original, loaded by `{load}` at {at:#x}, isn't changed");
            places.push(Place::instruction(atomic.at, message));
        }
    }
    places
}
