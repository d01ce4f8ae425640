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
    slots,
    stall_rep,
    dtlb_misses_2m,
    stlb_misses_2m,
    user_loads,
    user_stores,
    user_l1d_misses,
    user_l2_misses,
    user_llc_misses,
    user_prefetched,
    user_prefetched_far,
    user_prefetched_memory,
    user_itlb_misses,
    user_dtlb_misses,
    user_stlb_misses,
    user_dtlb_misses_2m,
    user_stlb_misses_2m,
}

pub const EVENTS: usize = NAMES.len();

/// Those that follow from which blocks and branches were executed: all that `events=edges` counts. They come first.
pub const EDGE_EVENTS: usize = Event::rep_bytes as usize;

/// Those that need no look at user code's own accesses. They come before the others.
pub const KERNEL_EVENTS: usize = Event::dtlb_misses_2m as usize;

/// What user code's accesses are counted as, and the event of the record that holds it.
pub const OF_USER_CODE: [(Event, Event); 13] = [
    (Event::loads, Event::user_loads),
    (Event::stores, Event::user_stores),
    (Event::l1d_misses, Event::user_l1d_misses),
    (Event::l2_misses, Event::user_l2_misses),
    (Event::llc_misses, Event::user_llc_misses),
    (Event::prefetched, Event::user_prefetched),
    (Event::prefetched_far, Event::user_prefetched_far),
    (Event::prefetched_memory, Event::user_prefetched_memory),
    (Event::itlb_misses, Event::user_itlb_misses),
    (Event::dtlb_misses, Event::user_dtlb_misses),
    (Event::stlb_misses, Event::user_stlb_misses),
    (Event::dtlb_misses_2m, Event::user_dtlb_misses_2m),
    (Event::stlb_misses_2m, Event::user_stlb_misses_2m),
];

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
