//! What is counted. The names are part of the PMU record's format; their meaning is in docs/lanes.md.

macro_rules! events {
    ($($name:ident),* $(,)?) => {
        /// An event; the number is its column in every vector of counts.
        #[allow(non_camel_case_types, dead_code)]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Event { $($name),* }

        /// Names by column.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

events! {
    instructions,
    rep_instructions,
    rep_iterations,
    taken_branches,
    not_taken_branches,
    jumps,
    calls,
    returns,
    indirect_branches,
    fences,
    full_fences,
    locked,
    privilege_switches,
    multiplies,
    divides,
    cr3_writes,
    control_writes,
    swapgs,
    irets,
    msr_writes,
    msr_reads,
    tlb_invalidations,
    xsaves,
    verws,
    ibpbs,
    serializing,
    user_instructions,
    user_rep_iterations,
    rep_bytes,
    mispredicted_conditional,
    mispredicted_indirect,
    mispredicted_returns,
    loads,
    stores,
    l1i_misses,
    l1d_misses,
    l2_misses,
    llc_misses,
    prefetched,
    prefetched_far,
    prefetched_memory,
    itlb_misses,
    dtlb_misses,
    stlb_misses,
    io_exits,
    stall_dependencies,
    stall_l2,
    stall_l2_chained,
    stall_llc,
    stall_llc_chained,
    stall_memory,
    stall_memory_chained,
    stall_translation,
    stall_branches,
    stall_fetch,
    stall_fences,
    btb_misses,
    op_cache_misses,
}

pub const EVENTS: usize = NAMES.len();

/// Those that follow from which blocks and branches were executed: all that `events=edges` counts. They come first.
pub const EDGE_EVENTS: usize = Event::rep_bytes as usize;

pub type Counts = [u64; EVENTS];

pub const CONTEXTS: usize = 3;

/// On whose behalf the kernel works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Context {
    /// System calls and kernel threads.
    Task,
    /// Page faults and other exceptions.
    Exception,
    /// Timer ticks and devices: whatever comes by itself.
    Interrupt,
}
