//! Which kernel runs, and which boot of it this is.

use crate::failure::{Failure, OfFile};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const NOTES: &str = "/sys/kernel/notes";
/// Type and owner of the note with the build id: NT_GNU_BUILD_ID of <elf.h>.
const BUILD_ID: (u32, &[u8]) = (3, b"GNU\0");
const LONGEST_BUILD_ID: usize = 64;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    pub release: String,
    /// The build id in hexadecimal digits; None where the kernel has none. Kernels of one source and configuration
    /// differ in it if they were compiled otherwise.
    pub build_id: Option<String>,
}

impl Kernel {
    pub fn running() -> Result<Kernel, Failure> {
        let names = nix::sys::utsname::uname().map_err(|error| Failure::of_surroundings(error.desc(), ""))?;
        let notes = fs::read(NOTES).unwrap_or_default();
        Ok(Kernel { release: names.release().to_string_lossy().into_owned(), build_id: build_id(&notes) })
    }
}

/// Return the id of this boot: 36 characters, lower-case hexadecimal digits and hyphens.
pub fn boot_id() -> Result<String, Failure> {
    let path = Path::new(BOOT_ID);
    let text = fs::read_to_string(path).map_err(|error| Failure::of_file("read", path, &error))?;
    match text.trim() {
        id if is_boot_id(id) => Ok(id.into()),
        other => Err(Failure::of_surroundings(format!("{BOOT_ID} holds '{other}', which is not the id of a boot"), "")),
    }
}

pub fn is_boot_id(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}

/// Return the build id in ELF notes: sizes of name and content, type, then both, each padded to 4 bytes (elf(5)).
fn build_id(mut notes: &[u8]) -> Option<String> {
    while let Some((head, rest)) = notes.split_at_checked(12) {
        let word = |place: usize| u32::from_le_bytes(head[4 * place..][..4].try_into().expect("4 bytes"));
        let (name, rest) = rest.split_at_checked((word(0) as usize).next_multiple_of(4))?;
        let (content, rest) = rest.split_at_checked((word(1) as usize).next_multiple_of(4))?;
        if (word(2), name) == BUILD_ID && word(1) as usize <= LONGEST_BUILD_ID {
            return Some(content[..word(1) as usize].iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = rest;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_build_id_is_found_after_other_notes() {
        let mut notes = Vec::new();
        for (name, content, kind) in
            [(&b"Linux\0\0\0"[..], &b"\0\0\0\0"[..], 0x101u32), (b"GNU\0", b"\xab\xcd\x01\0", 3)]
        {
            let sizes = [if kind == 3 { 4u32 } else { 6 }, if kind == 3 { 3 } else { 4 }, kind];
            notes.extend(sizes.iter().flat_map(|word| word.to_le_bytes()));
            notes.extend([name, content].concat());
        }
        assert_eq!(build_id(&notes).as_deref(), Some("abcd01"));
        assert_eq!(build_id(&notes[..24]), None);
    }

    #[test]
    fn this_boot_has_an_id() {
        assert!(is_boot_id(&boot_id().unwrap()));
        assert!(!is_boot_id("../../../../../../../../../etc/passw"));
    }

    proptest! {
        #[test]
        fn fuzz_any_notes_are_read_to_their_end(notes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(id) = build_id(&notes) {
                prop_assert!(id.len() <= 2 * LONGEST_BUILD_ID);
            }
        }
    }
}
