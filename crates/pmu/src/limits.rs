//! What a guest can make this plugin keep, and how much of each it keeps at most.
//!
//! A guest is hostile: markers of ever new benchmarks, code that changes itself, calls that never return. So whatever
//! grows with what a guest does asks for room first. When there is none left the plugin gives up for good: it counts
//! nothing any more and keeps nothing new, and its record says of what there was too much, and holds no counts.

use serde::Serialize;

macro_rules! things {
    ($($(#[$doc:meta])* $name:ident = $most:expr),* $(,)?) => {
        /// What takes room. In brackets: how many there were on Linux 6.12 when all tests ran, with 100 iterations.
        #[allow(non_camel_case_types)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Thing { $($(#[$doc])* $name),* }

        #[cfg(test)]
        impl Thing {
            pub const ALL: &[Thing] = &[$(Thing::$name),*];
        }

        pub const NAMES: &[&str] = &[$(stringify!($name)),*];
        pub const MOST: [usize; NAMES.len()] = [$($most),*];
    };
}

things! {
    // What a record holds. kdyno takes no more from any record, whoever wrote it (measure/guest/pmu_limits.py).
    /// Benchmarks. [34; programs of the probe: 206]
    regions = 1 << 10,
    /// Iterations of all regions: kdyno asks for at most 1000 of each benchmark. 1 kB each. [3,400]
    iterations = 1 << 16,
    /// Functions of which code was translated; those that ran are in the record. 2 kB each. [4,200]
    functions = 1 << 16,
    /// Ranges of code that ran, by region and context. [120,000]
    executed_blocks = 1 << 20,
    /// Branches that were taken, by region and context. [85,000]
    executed_branches = 1 << 20,
    /// Functions that ran, by region and context. 400 bytes each. [13,000]
    executed_functions = 1 << 17,
    /// Nodes of the trees of call stacks. [57,000; with five programs beside the tests: 480,000]
    stack_nodes = 1 << 20,
    /// Nodes above each other. [36; programs of the probe: 400]
    stack_depth = 1 << 12,
    /// The record's body. [3 million; with programs: 7 million]
    body_bytes = 1 << 25,

    // What is kept until the end, and in no record.
    /// Blocks of counted code, since the guest began. 250 bytes each. [44,000]
    blocks = 1 << 19,
    /// Bytes of their instructions; what is known of an instruction takes 32 bytes. [1 million; the probe: 3 million]
    code_bytes = 1 << 24,
    /// Blocks of user code, while a kernel is counted. 100 bytes each. [9,800]
    user_blocks = 1 << 20,
    /// Their instructions. 8 bytes each. [44,000]
    user_instructions = 1 << 23,
    /// Blocks that came one after the other. 90 bytes each. [27,000]
    links = 1 << 20,
    /// Places where an exception broke off a block and it was taken up again. [6]
    broken_off = 1 << 16,
    /// Exceptions and interrupts inside each other, of one task. [3]
    traps = 1000,
    /// Tasks that sleep in a region. [5]
    tasks = 1 << 16,
    /// What their calls, exceptions and interrupts have room for, all together. [330]
    frames = 1 << 20,
}

/// Steps of traces that are kept, of one region and of all together; further ones are left out, and that is said in the
/// record. 16 bytes each. [190,000 and 1.1 million]
pub const TRACE_STEPS_OF_REGION: usize = 1 << 18;
pub const TRACE_STEPS: usize = 1 << 21;

/// Of what there was too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Excess {
    #[serde(rename = "of")]
    pub thing: &'static str,
    #[serde(rename = "most")]
    pub limit: usize,
}

/// The room that is taken, and whether more was wanted than there is.
pub struct Room {
    limits: [usize; NAMES.len()],
    amounts: [usize; NAMES.len()],
    excess: Option<Thing>,
}

impl Room {
    pub fn new() -> Room {
        Room { limits: MOST, amounts: [0; NAMES.len()], excess: None }
    }

    /// Take room for so many more, and return whether there was any.
    #[must_use]
    pub fn take(&mut self, thing: Thing, number: usize) -> bool {
        let amount = self.amounts[thing as usize].saturating_add(number);
        let fits = self.holds(thing, amount);
        if fits {
            self.amounts[thing as usize] = amount;
        }
        fits
    }

    /// Return whether there is room for so many in all, of something that comes and goes.
    #[must_use]
    pub fn holds(&mut self, thing: Thing, total: usize) -> bool {
        let fits = total <= self.limits[thing as usize];
        if !fits {
            self.excess.get_or_insert(thing);
        }
        fits
    }

    /// Return the first thing that there was no room for.
    pub fn excess(&self) -> Option<Excess> {
        self.excess.map(|thing| Excess { thing: NAMES[thing as usize], limit: self.limits[thing as usize] })
    }

    #[inline(always)]
    pub fn is_exceeded(&self) -> bool {
        self.excess.is_some()
    }

    /// Make a limit smaller than it is for a guest.
    #[cfg(test)]
    pub fn set_limit(&mut self, thing: Thing, limit: usize) {
        self.limits[thing as usize] = limit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_was_too_much_of_first_is_named_for_good() {
        let mut room = Room::new();
        room.set_limit(Thing::links, 3);
        assert!(room.take(Thing::links, 2) && room.holds(Thing::traps, 1000) && room.take(Thing::links, 1));
        assert_eq!(room.excess(), None);
        assert!(
            !room.take(Thing::links, 1) && !room.holds(Thing::traps, 1001) && !room.take(Thing::regions, usize::MAX)
        );
        assert_eq!(room.excess(), Some(Excess { thing: "links", limit: 3 }));
    }
}
