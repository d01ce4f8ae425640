//! What was counted since the benchmark or the iteration began, before it is moved to a region.

use crate::block::{Block, FunctionCounts, Link};
use crate::events::{Context, Counts, EVENTS};
use rustc_hash::FxHashMap;

/// What has counts since the benchmark began; the counts themselves are in links and functions.
#[derive(Default)]
pub struct Counted {
    pub links: Vec<*mut Link>,
    pub functions: Vec<*mut FunctionCounts>,
    pub aborted: FxHashMap<Aborted, Times>,
    /// Since the iteration began.
    pub user_instructions: u64,
    pub user_rep_iterations: u64,
    /// Of its accesses, in the columns of the kernel's own events.
    pub user: UserCounts,
}

/// The counts of user code's accesses, since the iteration began.
pub struct UserCounts(pub Counts);

impl Default for UserCounts {
    fn default() -> UserCounts {
        UserCounts([0; EVENTS])
    }
}

/// A block that an exception broke off, and where it was taken up again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Aborted {
    pub block: *const Block,
    pub context: Context,
    pub resumed_at: u64,
}

/// How often something happened.
#[derive(Clone, Copy, Default)]
pub struct Times {
    /// Since the benchmark began.
    pub count: u64,
    /// What that was when the iteration began.
    pub start_count: u64,
}
