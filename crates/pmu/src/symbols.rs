//! Functions by address, and the few that say how the kernel is entered.

use std::fmt;

/// What the host knows a function to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Plain,
    /// Where a system call arrives.
    Syscall,
    /// Where an exception arrives.
    Exception,
    /// Where an interrupt arrives.
    Interrupt,
    /// Where one task's stack is exchanged for another's.
    Switch,
    /// Where a new task begins.
    Fork,
    /// Where a large page is made.
    Huge,
    /// Where the kernel waits for an interrupt, in a loop.
    Idle,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub start: u64,
    pub size: u64,
    pub role: Role,
    pub name: String,
}

/// All functions, ascending; the first is the one that represents all other addresses.
#[derive(Debug)]
pub struct Symbols {
    functions: Vec<Function>,
}

pub const UNKNOWN: u32 = 0;

/// Bytes. The kernel's own tools have no place for a name of more than 512 (KSYM_NAME_LEN in include/linux/kallsyms.h).
pub const LONGEST_NAME: usize = 1024;

/// As lines of symbols name them.
pub const ROLES: [(&str, Role); 8] = [
    ("-", Role::Plain),
    ("syscall", Role::Syscall),
    ("exception", Role::Exception),
    ("interrupt", Role::Interrupt),
    ("switch", Role::Switch),
    ("fork", Role::Fork),
    ("huge", Role::Huge),
    ("idle", Role::Idle),
];

/// Those that a kernel must have.
pub const NEEDED: [(Role, &str); 3] =
    [(Role::Syscall, "syscall"), (Role::Switch, "switch"), (Role::Interrupt, "interrupt")];

#[derive(Debug, PartialEq, Eq)]
pub enum SymbolError {
    BadLine(usize),
    LongName(usize),
    NotAscending(usize),
    NoRole(&'static str),
}

impl Symbols {
    pub fn none() -> Symbols {
        let unknown = Function { start: 0, size: 0, role: Role::Plain, name: "[unknown]".into() };
        Symbols { functions: vec![unknown] }
    }

    /// Parse lines `START SIZE ROLE NAME`, numbers in hex.
    pub fn parse(text: &str) -> Result<Symbols, SymbolError> {
        let mut symbols = Symbols::none();
        for (number, line) in (1..).zip(text.lines()) {
            let function = parse_line(line).ok_or(SymbolError::BadLine(number))?;
            if function.name.len() > LONGEST_NAME {
                return Err(SymbolError::LongName(number));
            }
            if symbols.functions.last().is_some_and(|last| function.start <= last.start) {
                return Err(SymbolError::NotAscending(number));
            }
            symbols.functions.push(function);
        }
        Ok(symbols)
    }

    /// Refuse symbols of a kernel whose entries couldn't be distinguished from its own work.
    pub fn require_kernel_roles(&self) -> Result<(), SymbolError> {
        for (role, name) in NEEDED {
            if !self.functions.iter().any(|function| function.role == role) {
                return Err(SymbolError::NoRole(name));
            }
        }
        Ok(())
    }

    /// Return the number of the function that holds an address.
    pub fn find(&self, address: u64) -> u32 {
        let next = self.functions.partition_point(|function| function.start <= address);
        let Some(place) = next.checked_sub(1) else {
            return UNKNOWN;
        };
        let function = &self.functions[place];
        if address - function.start < function.size { place as u32 } else { UNKNOWN }
    }

    pub fn get(&self, number: u32) -> &Function {
        &self.functions[number as usize]
    }

    pub fn len(&self) -> usize {
        self.functions.len()
    }
}

fn parse_line(line: &str) -> Option<Function> {
    let mut words = line.splitn(4, ' ');
    let start = u64::from_str_radix(words.next()?, 16).ok()?;
    let size = u64::from_str_radix(words.next()?, 16).ok()?;
    let word = words.next()?;
    let (_, role) = *ROLES.iter().find(|(name, _)| *name == word)?;
    let name = words.next().filter(|name| !name.is_empty())?.into();
    Some(Function { start, size, role, name })
}

impl fmt::Display for SymbolError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            SymbolError::BadLine(number) => write!(f, "line {number} is not START SIZE ROLE NAME"),
            SymbolError::LongName(number) => {
                write!(f, "line {number}: the name is longer than {LONGEST_NAME} bytes")
            }
            SymbolError::NotAscending(number) => {
                write!(f, "line {number}: the addresses don't ascend")
            }
            SymbolError::NoRole(role) => write!(f, "no function has the role {role}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "1000 10 syscall entry\n1020 8 - work\n1030 4 switch sw\n1040 100 interrupt irqs\n";

    #[test]
    fn an_address_belongs_to_the_function_around_it_or_to_none() {
        let symbols = Symbols::parse(TEXT).unwrap();
        let name = |address| symbols.get(symbols.find(address)).name.as_str();
        assert_eq!([name(0x1000), name(0x100f), name(0x1027)], ["entry", "entry", "work"]);
        assert_eq!([name(0), name(0xfff), name(0x1010), name(0x1028), name(u64::MAX)], ["[unknown]"; 5]);
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        assert_eq!(Symbols::parse("1000 10 - a\nzz 1 - b\n").unwrap_err(), SymbolError::BadLine(2));
        assert_eq!(Symbols::parse("1000 10 boss a\n").unwrap_err(), SymbolError::BadLine(1));
        assert_eq!(Symbols::parse("1000 10 - a\n1000 8 - b\n").unwrap_err(), SymbolError::NotAscending(2));
    }

    #[test]
    fn a_name_that_no_reader_of_the_record_takes_is_refused() {
        let named =
            |length| Symbols::parse(&format!("1000 10 - {}\n", "a".repeat(length))).map(|symbols| symbols.len());
        assert_eq!(named(LONGEST_NAME), Ok(2));
        assert_eq!(named(LONGEST_NAME + 1), Err(SymbolError::LongName(1)));
    }

    #[test]
    fn a_kernel_without_known_entries_is_refused() {
        assert_eq!(Symbols::parse(TEXT).unwrap().require_kernel_roles(), Ok(()));
        let cut = Symbols::parse("1000 10 syscall entry\n1040 100 interrupt irqs\n").unwrap();
        assert_eq!(cut.require_kernel_roles(), Err(SymbolError::NoRole("switch")));
    }
}
