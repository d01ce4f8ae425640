//! Calls that are open, and the counts of those that returned.

use crate::routines::Owners;
use std::collections::HashMap;
use std::fmt::Write;

/// Open calls at once: interrupts call routines, too. What is below has lost its return.
const MOST_OPEN: usize = 16;
/// Different calls that are told apart; more are only counted.
const MOST_KINDS: usize = 1 << 20;
const LINE: u64 = 64;
/// A routine goes through its memory without larger gaps. What is farther away is a table.
const LARGEST_GAP: u64 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Extent {
    start: u64,
    end: u64,
}

impl Extent {
    fn add(&mut self, address: u64, size: u64) {
        if self.start == self.end {
            *self = Extent { start: address, end: address };
        }
        let end = address.saturating_add(size);
        if end.saturating_add(LARGEST_GAP) < self.start || address > self.end.saturating_add(LARGEST_GAP) {
            return;
        }
        self.start = self.start.min(address);
        self.end = self.end.max(end);
    }

    fn bytes(self) -> u64 {
        self.end - self.start
    }

    fn offset(self) -> u8 {
        (self.start % LINE) as u8
    }

    /// Return whether it is in the lower half of the address space, which a kernel leaves to user space.
    fn is_user(self) -> bool {
        self.start != self.end && self.start >> 63 == 0
    }
}

/// Which memory of a call belongs to user space.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Clone, Copy)]
enum User {
    Neither,
    Read,
    Written,
    Both,
}

impl User {
    fn of(read: Extent, written: Extent) -> User {
        match (read.is_user(), written.is_user()) {
            (false, false) => User::Neither,
            (true, false) => User::Read,
            (false, true) => User::Written,
            (true, true) => User::Both,
        }
    }

    fn name(self) -> &'static str {
        match self {
            User::Neither => "neither",
            User::Read => "read",
            User::Written => "written",
            User::Both => "both",
        }
    }
}

struct Open {
    routine: usize,
    written: Extent,
    read: Extent,
}

impl Open {
    fn is_of(&self, owners: Owners) -> bool {
        owners >> self.routine & 1 == 1
    }
}

#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Clone, Copy)]
struct Kind {
    routine: usize,
    is_measured: bool,
    written: u64,
    read: u64,
    to: u8,
    from: u8,
    user: User,
}

#[derive(Default)]
pub struct Calls {
    open: Vec<Open>,
    counts: HashMap<Kind, u64>,
    is_measured: bool,
    /// Calls whose return wasn't seen.
    lost: u64,
    /// Calls beyond MOST_KINDS.
    untold: u64,
}

impl Calls {
    pub fn set_measured(&mut self, is_measured: bool) {
        self.is_measured = is_measured;
    }

    pub fn enter(&mut self, routine: usize) {
        if self.open.len() == MOST_OPEN {
            self.open.remove(0);
            self.lost += 1;
        }
        self.open.push(Open { routine, written: Extent::default(), read: Extent::default() });
    }

    /// An access by code of these routines belongs to the innermost call of one of them.
    pub fn access(&mut self, owners: Owners, address: u64, size: u64, is_store: bool) {
        if let Some(open) = self.open.iter_mut().rev().find(|open| open.is_of(owners)) {
            if is_store { &mut open.written } else { &mut open.read }.add(address, size);
        }
    }

    pub fn leave(&mut self, owners: Owners) {
        let Some(place) = self.open.iter().rposition(|open| open.is_of(owners)) else { return };
        self.lost += (self.open.len() - place - 1) as u64;
        self.open.truncate(place + 1);
        let Some(Open { routine, written, read }) = self.open.pop() else { return };
        let kind = Kind {
            routine,
            is_measured: self.is_measured,
            written: written.bytes(),
            read: read.bytes(),
            to: written.offset(),
            from: read.offset(),
            user: User::of(read, written),
        };
        if self.counts.len() < MOST_KINDS || self.counts.contains_key(&kind) {
            *self.counts.entry(kind).or_default() += 1;
        } else {
            self.untold += 1;
        }
    }

    /// Return the counts as tab-separated lines, and a last line of the calls that aren't among them.
    pub fn report(&self, names: &[String]) -> String {
        let mut kinds: Vec<_> = self.counts.iter().collect();
        kinds.sort();
        let mut text = String::from("routine\twhen\twritten\tread\tto\tfrom\tuser\tcount\n");
        for (kind, count) in kinds {
            let when = if kind.is_measured { "measured" } else { "other" };
            let Kind { written, read, to, from, user, .. } = kind;
            let (name, user) = (&names[kind.routine], user.name());
            // Writing to a String doesn't fail.
            let _ = writeln!(text, "{name}\t{when}\t{written}\t{read}\t{to}\t{from}\t{user}\t{count}");
        }
        let _ = writeln!(text, "-\tlost\t0\t0\t0\t0\t-\t{}", self.lost + self.untold + self.open.len() as u64);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMCPY: Owners = 1;
    const STRLEN: Owners = 2;
    const KERNEL: u64 = 0xffff_8880_0000_1000;

    fn report(calls: &Calls) -> Vec<String> {
        calls.report(&["memcpy".into(), "strlen".into()]).lines().skip(1).map(|line| line.replace('\t', " ")).collect()
    }

    #[test]
    fn the_extents_of_a_call_are_those_of_its_accesses_in_any_order() {
        let mut calls = Calls::default();
        calls.set_measured(true);
        for _ in 0..2 {
            calls.enter(0);
            for offset in [8, 0, 5] {
                calls.access(MEMCPY, KERNEL + 3 + offset, 8, false);
                calls.access(MEMCPY, KERNEL + 0x1041 + offset, 8, true);
            }
            calls.leave(MEMCPY);
        }
        assert_eq!(report(&calls), ["memcpy measured 16 16 1 3 neither 2", "- lost 0 0 0 0 - 0"]);
    }

    #[test]
    fn a_table_far_away_is_not_a_part_of_the_memory() {
        let mut calls = Calls::default();
        calls.enter(1);
        for address in [0x10_0040, 0x2000, 0x10_0048, 0x90_0000, 0x10_0048 + 8 + LARGEST_GAP] {
            calls.access(STRLEN, address, 8, false);
        }
        calls.access(STRLEN, u64::MAX, 8, false);
        calls.leave(STRLEN);
        assert_eq!(report(&calls), ["strlen other 0 280 0 0 read 1", "- lost 0 0 0 0 - 0"]);
    }

    #[test]
    fn a_call_in_an_interrupt_of_another_is_a_call_of_its_own() {
        let mut calls = Calls::default();
        calls.enter(0);
        calls.access(MEMCPY, 0x1000, 1, true);
        calls.enter(0);
        calls.access(MEMCPY, 0x9000, 4, true);
        calls.leave(MEMCPY);
        calls.enter(1);
        calls.access(STRLEN, 0x7001, 3, false);
        calls.leave(STRLEN);
        calls.access(MEMCPY, 0x1001, 1, true);
        calls.leave(MEMCPY);
        let expected = [
            "memcpy other 2 0 0 0 written 1",
            "memcpy other 4 0 0 0 written 1",
            "strlen other 0 3 0 1 read 1",
            "- lost 0 0 0 0 - 0",
        ];
        assert_eq!(report(&calls), expected);
    }

    #[test]
    fn a_call_without_memory_has_the_size_0_and_one_without_a_return_is_lost() {
        let mut calls = Calls::default();
        calls.enter(1);
        calls.enter(0);
        calls.leave(MEMCPY);
        calls.leave(MEMCPY);
        assert_eq!(report(&calls), ["memcpy other 0 0 0 0 neither 1", "- lost 0 0 0 0 - 1"]);
    }

    #[test]
    fn memory_of_user_space_is_in_the_lower_half_of_the_addresses() {
        let mut calls = Calls::default();
        for (from, to) in [(0x1000, KERNEL), (KERNEL, 0x1000), (0x1000, 0x2000)] {
            calls.enter(0);
            calls.access(MEMCPY, from, 8, false);
            calls.access(MEMCPY, to, 8, true);
            calls.leave(MEMCPY);
        }
        let expected = ["read", "written", "both"].map(|user| format!("memcpy other 8 8 0 0 {user} 1"));
        assert_eq!(report(&calls)[..3], expected);
    }

    #[test]
    fn shared_code_belongs_to_the_innermost_call_of_its_owners() {
        let mut calls = Calls::default();
        calls.enter(0);
        calls.enter(1);
        calls.access(MEMCPY | STRLEN, KERNEL, 8, false);
        calls.leave(MEMCPY | STRLEN);
        calls.access(MEMCPY | STRLEN, KERNEL, 4, false);
        calls.leave(MEMCPY | STRLEN);
        let expected = ["memcpy other 0 4 0 0 neither 1", "strlen other 0 8 0 0 neither 1", "- lost 0 0 0 0 - 0"];
        assert_eq!(report(&calls), expected);
    }

    #[test]
    fn no_more_calls_are_open_than_interrupts_can_nest() {
        let mut calls = Calls::default();
        for _ in 0..100 {
            calls.enter(0);
        }
        assert_eq!(calls.open.len(), MOST_OPEN);
        assert_eq!(report(&calls), ["- lost 0 0 0 0 - 100"]);
    }
}
