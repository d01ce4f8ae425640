//! unknown-call: a call of a function that the kernel doesn't have.
//!
//! Compilers call functions that nobody wrote a call of: helpers of libgcc and compiler-rt, and library functions of
//! C that they take for granted. In a whole set any name that nothing defines is unknown; of a part of a kernel only
//! names are known that no kernel has.

use object::{Object, ObjectSymbol, elf};
use rustc_hash::FxHashSet;

use super::{Look, Place, Places};
use crate::binary::Target;

/// Functions of compilers' libraries that no kernel has.
const HELPERS: &[&str] = &[
    "__addtf3",
    "__divtf3",
    "__multf3",
    "__subtf3",
    "__floatsitf",
    "__floatditf",
    "__fixtfdi",
    "__divti3",
    "__modti3",
    "__multi3",
    "__udivti3",
    "__umodti3",
    "__udivmodti4",
    "__divmodti4",
    "__udivdi3",
    "__divdi3",
    "__umoddi3",
    "__moddi3",
    "__udivmoddi4",
    "__muldi3",
    "__mulvdi3",
    "__mulvsi3",
    "__addvdi3",
    "__addvsi3",
    "__subvdi3",
    "__subvsi3",
    "__negvdi2",
    "__negvsi2",
    "__popcountdi2",
    "__popcountsi2",
    "__paritydi2",
    "__paritysi2",
    "__powidf2",
    "__powisf2",
    "__muldc3",
    "__mulsc3",
    "__divdc3",
    "__divsc3",
    "__fixunsdfdi",
    "__fixunssfdi",
    "__floatundidf",
    "__floatundisf",
    "__truncdfhf2",
    "__truncsfhf2",
    "__extendhfsf2",
    "__emutls_get_address",
    "__tls_get_addr",
    "__clear_cache",
    "__enable_execute_stack",
    "__gcc_personality_v0",
    "__gxx_personality_v0",
    "_Unwind_Resume",
    "__cxa_atexit",
    "__atomic_load",
    "__atomic_store",
    "__atomic_exchange",
    "__atomic_compare_exchange",
    "__atomic_load_16",
    "__atomic_store_16",
    "__atomic_exchange_16",
    "__atomic_compare_exchange_16",
    "__sync_val_compare_and_swap_16",
    "__cpu_indicator_init",
    "__morestack",
    "__muloti4",
    "__mulodi4",
    "__mulosi4",
];
/// Functions of hosted C that compilers make calls of by themselves, and that no kernel has.
const HOSTED: &[&str] = &[
    "abort",
    "atexit",
    "calloc",
    "exit",
    "fprintf",
    "fputc",
    "fputs",
    "free",
    "fwrite",
    "malloc",
    "mempcpy",
    "printf",
    "putchar",
    "puts",
    "realloc",
    "strdup",
    "strndup",
    "__assert_fail",
    "__chk_fail",
    "__memcpy_chk",
    "__memmove_chk",
    "__memset_chk",
    "__printf_chk",
    "__sprintf_chk",
    "__snprintf_chk",
    "__strcat_chk",
    "__strcpy_chk",
    "__strncpy_chk",
    "fabs",
    "floor",
    "ceil",
    "sqrt",
    "pow",
    "exp",
    "log",
    "fmod",
    "ldexp",
    "trunc",
    "round",
];

pub fn run(look: &Look) -> Vec<Place> {
    let binary = look.binary;
    if !binary.is_object {
        // What is linked has no undefined function: the linker has seen to that.
        return Vec::new();
    }
    let weak = binary.elf.symbols().filter(|symbol| symbol.is_undefined() && symbol.is_weak());
    let weak: FxHashSet<&str> = weak.filter_map(|symbol| symbol.name().ok()).collect();
    let mut places = Places::default();
    let mut last = None;
    for (position, section) in binary.sections.iter().enumerate().filter(|(_, section)| section.is_code) {
        for relocation in &section.relocations {
            let Target::Undefined(name) = binary.named_by(relocation) else {
                continue;
            };
            if !is_unknown(look, name) || last == Some((position, name)) || weak.contains(name) {
                continue;
            }
            if let Some(address) = branch_before(look, position, section.base + relocation.offset, relocation.kind) {
                last = Some((position, name));
                places.push(Place::instruction(address, format!("calls {name}, which {}", why(look, name))));
            }
        }
    }
    places.0
}

fn is_unknown(look: &Look, name: &str) -> bool {
    let is_defined = look.shared.defines(name);
    !is_defined && (look.settings.is_whole || HELPERS.contains(&name) || HOSTED.contains(&name))
}

fn why(look: &Look, name: &str) -> &'static str {
    if HELPERS.contains(&name) {
        "is in compilers' libraries, not in the kernel"
    } else if HOSTED.contains(&name) {
        "is a function of hosted C, not of the kernel"
    } else if look.settings.symbols.is_empty() {
        "none of these objects defines"
    } else {
        "neither these objects nor the given symbols define"
    }
}

/// Return the address of the call, jump or conditional jump whose target is the field at `field`.
fn branch_before(look: &Look, section: usize, field: u64, kind: u32) -> Option<u64> {
    if kind != elf::R_X86_64_PC32 && kind != elf::R_X86_64_PLT32 {
        return None;
    }
    let section = &look.binary.sections[section];
    let at = usize::try_from(field - section.base).ok()?;
    match section.bytes.get(at.saturating_sub(2)..at)? {
        [.., 0xe8 | 0xe9] => Some(field - 1),
        [0x0f, 0x80..=0x8f] => Some(field - 2),
        _ => None,
    }
}
