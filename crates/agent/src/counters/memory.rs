//! Counters that are in the kernel's memory, read by way of /proc/kcore: an ELF core file of all of it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::Source;
use super::arena::Arena;

pub const KCORE: &str = "/proc/kcore";

/// The bytes of an ELF file's header and of one program header (elf(5)).
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const PT_LOAD: u32 = 1;

pub struct Memory {
    core: File,
    /// The offset of the first byte in the file.
    offset: u64,
    bytes: usize,
    names: [String; 1],
}

impl Memory {
    pub fn open(path: &str, address: u64, bytes: u64) -> Result<Memory, String> {
        let of = |error: std::io::Error| format!("{path}: {error} (a kernel with CONFIG_PROC_KCORE has it)");
        let core = File::open(path).map_err(of)?;
        let mut header = [0; HEADER];
        core.read_exact_at(&mut header, 0).map_err(of)?;
        let (table, entries) = (number(&header, 32), u16::from_le_bytes([header[56], header[57]]));
        for entry in 0..u64::from(entries) {
            let mut part = [0; PROGRAM_HEADER];
            core.read_exact_at(&mut part, table + entry * PROGRAM_HEADER as u64).map_err(of)?;
            let (kind, offset) = (u32::from_le_bytes([part[0], part[1], part[2], part[3]]), number(&part, 8));
            let (start, length) = (number(&part, 16), number(&part, 40));
            let Some(skipped) = address.checked_sub(start) else { continue };
            if kind == PT_LOAD && length.checked_sub(skipped).is_some_and(|rest| rest >= bytes) {
                let names = ["memory".into()];
                return Ok(Memory { core, offset: offset + skipped, bytes: bytes as usize, names });
            }
        }
        Err(format!("{path} has no {bytes} bytes at {address:#x}"))
    }
}

/// Return 8 bytes of an ELF header as a number.
fn number(header: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"))
}

impl Source for Memory {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn read(&mut self, arena: &mut Arena) -> Result<(), String> {
        arena.add(|free| {
            let part = free.get_mut(..self.bytes).ok_or("the counters of this kernel take too much memory")?;
            self.core.read_exact_at(part, self.offset).map_err(|error| format!("{KCORE}: {error}"))?;
            Ok(self.bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Return an ELF core of two parts: 16 bytes at 0x1000, and 16 at 2^63.
    fn core() -> Vec<u8> {
        let mut file = vec![0; HEADER];
        file[32..40].copy_from_slice(&(HEADER as u64).to_le_bytes());
        file[56..58].copy_from_slice(&2_u16.to_le_bytes());
        for (offset, start) in [(176_u64, 0x1000_u64), (192, 1 << 63)] {
            let mut part = vec![0; PROGRAM_HEADER];
            part[0] = 1;
            part[8..16].copy_from_slice(&offset.to_le_bytes());
            part[16..24].copy_from_slice(&start.to_le_bytes());
            part[40..48].copy_from_slice(&16_u64.to_le_bytes());
            file.extend(part);
        }
        file.extend(0..32);
        file
    }

    #[test]
    fn memory_is_read_by_its_address() {
        let path = std::env::temp_dir().join(format!("kdyno-kcore-{}", std::process::id()));
        fs::write(&path, core()).unwrap();
        let mut memory = Memory::open(path.to_str().unwrap(), (1 << 63) + 4, 8).unwrap();
        let mut arena = Arena::new().unwrap();
        memory.read(&mut arena).unwrap();
        assert_eq!(arena.item(0), [20, 21, 22, 23, 24, 25, 26, 27]);
        for (address, bytes) in [((1 << 63) + 12, 8), (0, 1), (u64::MAX, 1), (0x1000, u64::MAX)] {
            let message = Memory::open(path.to_str().unwrap(), address, bytes).err().unwrap();
            assert!(message.contains("bytes at"), "{message}");
        }
        fs::remove_file(path).unwrap();
    }
}
