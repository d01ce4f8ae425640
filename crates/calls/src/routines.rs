//! Routines by address: a line `NAME ENTRY START END` for each part of a routine, addresses in hexadecimal. ENTRY is where
//! calls begin; a part that only others of the routine jump to or call has 0. Several routines may share a part.

use std::fmt;

/// A set of routines: bit N is the one of index N.
pub type Owners = u64;

#[derive(Debug, PartialEq, Eq)]
struct Part {
    routine: usize,
    entry: u64,
    start: u64,
    end: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Routines {
    pub names: Vec<String>,
    parts: Vec<Part>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct BadLine(usize);

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "line {}: expected NAME ENTRY START END", self.0)
    }
}

impl Routines {
    /// Parse the lines of a file. Fails at the first line that is not of the form.
    pub fn parse(text: &str) -> Result<Routines, BadLine> {
        let mut routines = Routines { names: Vec::new(), parts: Vec::new() };
        for (place, line) in text.lines().enumerate() {
            let part = routines.parse_part(line).ok_or(BadLine(place + 1))?;
            routines.parts.push(part);
        }
        Ok(routines)
    }

    fn parse_part(&mut self, line: &str) -> Option<Part> {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, entry, start, end] = words[..] else { return None };
        let [entry, start, end] = [entry, start, end].map(|word| u64::from_str_radix(word, 16).ok());
        let (entry, start, end) = (entry?, start?, end?);
        if name.is_empty() || start >= end {
            return None;
        }
        let routine = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.into());
            self.names.len() - 1
        });
        if routine >= Owners::BITS as usize {
            return None;
        }
        Some(Part { routine, entry, start, end })
    }

    /// Return the routines that an address is in; 0 if it is in none.
    pub fn at(&self, address: u64) -> Owners {
        let parts = self.parts.iter().filter(|part| (part.start..part.end).contains(&address));
        parts.fold(0, |owners, part| owners | 1 << part.routine)
    }

    /// Return the routine whose calls begin at an address.
    pub fn entered_at(&self, address: u64) -> Option<usize> {
        self.parts.iter().find(|part| part.entry == address).map(|part| part.routine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "memcpy 1000 1000 1010\nmemcpy 0 2000 2080\nstrlen 3000 3000 3020\n";

    #[test]
    fn an_address_is_in_one_of_the_parts_of_a_routine() {
        let routines = Routines::parse(TEXT).unwrap();
        assert_eq!(routines.names, ["memcpy", "strlen"]);
        let at = [0xfff, 0x1000, 0x100f, 0x1010, 0x2040, 0x3000].map(|address| routines.at(address));
        assert_eq!(at, [0, 1, 1, 0, 1, 2]);
        assert_eq!([0x1000, 0x2000, 0x3000].map(|address| routines.entered_at(address)), [Some(0), None, Some(1)]);
    }

    #[test]
    fn a_part_may_be_one_of_several_routines() {
        let text = "crc32 1000 1000 1010\ncrc32 0 2000 2080\ncrc32c 3000 3000 3020\ncrc32c 0 2000 2080\n";
        let routines = Routines::parse(text).unwrap();
        assert_eq!([0x1000, 0x2000, 0x3000].map(|address| routines.at(address)), [0b01, 0b11, 0b10]);
    }

    #[test]
    fn a_line_of_another_form_is_refused() {
        for line in ["memcpy", "memcpy 1 2 x", "memcpy 1 2 2", " 1 2 3", "memcpy 1 2 3 4", ""] {
            assert_eq!(Routines::parse(&format!("strlen 3000 3000 3020\n{line}\n")), Err(BadLine(2)), "{line}");
        }
        let many: String = (0..65).map(|name| format!("{name} 1 1 2\n")).collect();
        assert_eq!(Routines::parse(&many), Err(BadLine(65)), "a set has 64 routines");
    }
}
