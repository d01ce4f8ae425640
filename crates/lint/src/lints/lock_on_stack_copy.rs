//! lock-on-stack-copy: an atomic instruction whose operand is a copy on the stack.
//!
//! The value was loaded from other memory and stored into a slot, and the slot is what is changed atomically: the
//! original stays as it was, or is written back without a lock. A compiler does so if inline assembler is given a
//! value where it should have been given the memory.

use super::always_inline::declared_name;
use super::{Look, Place, Places};
use crate::disassembly::{instructions, text_at};
use crate::flow::{MOST_WORK_OF_FILE, atomics_on_copies, is_atomic};

/// Functions whose source changes a real variable atomically right after it was filled from memory, and why that is fine.
const VARIABLES: [(&str, &str); 1] =
    [("set_msr_interception_bitmap", "arch/x86/kvm/svm/svm.c: set_bit(bit, &tmp), and then msrpm[offset] = tmp")];

pub fn run(look: &Look) -> Vec<Place> {
    let binary = look.binary;
    let mut places = Places::default();
    let mut left = MOST_WORK_OF_FILE;
    for function in &binary.functions {
        let is_known = VARIABLES.iter().any(|(name, _)| *name == declared_name(function.name));
        if is_known || !instructions(binary, function).any(|instruction| is_atomic(&instruction)) {
            continue;
        }
        let Some(atomics) = atomics_on_copies(binary, function, &mut left) else {
            places
                .push(Place::unsure(function.start, "not looked at: it is too much work to follow its values".into()));
            continue;
        };
        for atomic in atomics {
            let load = text_at(binary, atomic.loaded_at);
            let at = binary.shown_address(atomic.loaded_at);
            let message =
                format!("atomic on a copy on the stack: the original, loaded by `{load}` at {at:#x}, isn't changed");
            places.push(Place::instruction(atomic.at, message));
        }
    }
    places.0
}
