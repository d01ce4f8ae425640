//! Limits: a file may be anybody's, and a small one can ask for more memory and time than there are.

use std::collections::HashMap;
use std::hash::Hash;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Bytes of a file.
pub const MOST_FILE: u64 = 2 << 30;
/// Bytes of memory beside the file: a few bytes can describe much.
const MOST_MEMORY: u64 = 1 << 30;
/// Bytes of a section that is compressed, once it isn't.
pub const MOST_UNPACKED: u64 = 1 << 30;
/// Bytes of a name or a path. A symbol of the kernel has up to 512 (KSYM_NAME_LEN of include/linux/kallsyms.h).
pub const LONGEST_NAME: usize = 4096;
/// Bytes of all names that are kept: a kernel's are some 2,000,000.
const MOST_NAMES: usize = 256 << 20;
/// Entries, rows and ranges that are looked at: a distribution's kernel has 100,000,000.
const MOST_STEPS: u64 = 1 << 30;
/// Addresses that can be asked for at once.
pub const MOST_ADDRESSES: usize = 1 << 22;
/// Functions inlined into each other.
pub const DEEPEST: usize = 256;

/// Limit the memory of this process, which ends where it would take more.
pub fn bound_memory(file: usize) -> Result<(), String> {
    let unbounded = |error| format!("can't limit memory: {error}");
    let (now, most) = getrlimit(Resource::RLIMIT_AS).map_err(unbounded)?;
    setrlimit(Resource::RLIMIT_AS, now.min(MOST_MEMORY + file as u64), most).map_err(unbounded)
}

pub struct Steps(u64);

impl Steps {
    pub fn new() -> Steps {
        Steps(MOST_STEPS)
    }

    pub fn take(&mut self, steps: usize) -> Result<(), String> {
        self.0 = self.0.checked_sub(steps as u64).ok_or("reading it is more work than any kernel makes")?;
        Ok(())
    }
}

/// Numbers, from 0 on, for things that are distinguished.
pub struct Numbers<T> {
    numbers: HashMap<T, u32>,
    bytes: usize,
}

impl<T: Clone + Eq + Hash> Numbers<T> {
    pub fn new() -> Numbers<T> {
        Numbers { numbers: HashMap::new(), bytes: 0 }
    }

    /// Return the number of a thing that takes so many bytes, and whether it is new.
    pub fn number(&mut self, thing: &T, bytes: usize) -> Result<(u32, bool), String> {
        if let Some(known) = self.numbers.get(thing) {
            return Ok((*known, false));
        }
        self.bytes += bytes + size_of::<T>();
        if self.bytes > MOST_NAMES {
            return Err(format!("its names have more than {MOST_NAMES} bytes"));
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(thing.clone(), number);
        Ok((number, true))
    }
}

/// Return a name as text. One that is too long is refused.
pub fn name(bytes: &[u8]) -> Result<String, String> {
    match bytes.len() {
        0..=LONGEST_NAME => Ok(String::from_utf8_lossy(bytes).into_owned()),
        length => Err(format!("a name in it has {length} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends() {
        let mut steps = Steps::new();
        assert_eq!(steps.take(1 << 30), Ok(()));
        assert!(steps.take(1).unwrap_err().contains("more work"));
    }

    #[test]
    fn what_is_the_same_has_one_number_and_all_of_it_a_limit() {
        let mut numbers = Numbers::new();
        assert_eq!(numbers.number(&"a", 1), Ok((0, true)));
        assert_eq!(numbers.number(&"b", 1), Ok((1, true)));
        assert_eq!(numbers.number(&"a", 1), Ok((0, false)));
        assert!(numbers.number(&"c", MOST_NAMES).unwrap_err().contains("more than"));
    }

    #[test]
    fn a_long_name_is_refused() {
        assert_eq!(name(b"caf\xe9"), Ok("caf\u{fffd}".into()));
        assert!(name(&[b'x'; LONGEST_NAME]).is_ok());
        assert_eq!(name(&[b'x'; LONGEST_NAME + 1]), Err("a name in it has 4097 bytes".into()));
    }
}
