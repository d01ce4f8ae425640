//! What a user can meet: one line, with the way out, and an exit code as in all of kdyno.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What was asked can't be done as asked, or its result is wrong.
const ASKED: u8 = 1;
/// The surroundings failed: the kernel, memory, the disk, rights.
const SURROUNDINGS: u8 = 3;
/// The command line can't be understood: EX_USAGE of <sysexits.h>.
const USAGE: u8 = 64;

/// A process can hand it to another.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    message: String,
    /// Empty where there is no way out to tell.
    hint: String,
    pub exit_code: u8,
}

impl Failure {
    pub fn of_user(message: impl Into<String>, hint: &str) -> Failure {
        Failure { message: message.into(), hint: hint.into(), exit_code: ASKED }
    }

    pub fn of_surroundings(message: impl Into<String>, hint: &str) -> Failure {
        Failure { message: message.into(), hint: hint.into(), exit_code: SURROUNDINGS }
    }

    pub fn of_usage(message: impl Into<String>, hint: &str) -> Failure {
        Failure { message: message.into(), hint: hint.into(), exit_code: USAGE }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hint.as_str() {
            "" => write!(out, "{}", self.message),
            hint => write!(out, "{}; {hint}", self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_out_follows_the_message_where_there_is_one() {
        assert_eq!(Failure::of_user("no", "say yes").to_string(), "no; say yes");
        assert_eq!(Failure::of_surroundings("no", "").to_string(), "no");
    }

    #[test]
    fn exit_codes_are_those_of_all_programs() {
        let failures = [Failure::of_user, Failure::of_surroundings, Failure::of_usage];
        assert_eq!(failures.map(|failure| failure("", "").exit_code), [1, 3, 64]);
    }
}
