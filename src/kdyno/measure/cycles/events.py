"""The events that a model may weigh, and which of them user programs can't show."""

from __future__ import annotations

EVENTS = (
    "instructions",
    "rep_instructions",
    "rep_iterations",
    "taken_branches",
    "not_taken_branches",
    "jumps",
    "calls",
    "returns",
    "indirect_branches",
    "fences",
    "full_fences",
    "locked",
    "privilege_switches",
    "multiplies",
    "divides",
    "cr3_writes",
    "control_writes",
    "swapgs",
    "irets",
    "msr_writes",
    "msr_reads",
    "tlb_invalidations",
    "xsaves",
    "verws",
    "ibpbs",
    "serializing",
    "user_instructions",
    "user_rep_iterations",
    "rep_bytes",
    "mispredicted_conditional",
    "mispredicted_indirect",
    "mispredicted_returns",
    "loads",
    "stores",
    "l1i_misses",
    "l1d_misses",
    "l2_misses",
    "llc_misses",
    "prefetched",
    "prefetched_far",
    "prefetched_memory",
    "itlb_misses",
    "dtlb_misses",
    "stlb_misses",
    "io_exits",
    "stall_dependencies",
    "stall_l2",
    "stall_l2_chained",
    "stall_llc",
    "stall_llc_chained",
    "stall_memory",
    "stall_memory_chained",
    "stall_translation",
    "stall_branches",
    "stall_fetch",
    "stall_fences",
    "btb_misses",
    "op_cache_misses",
    "slots",
    "stall_rep",
)
"""In the order in which the plugin counts them; a test compares this list with crates/model/src/events.rs."""

WITH_USER_CODE = (
    "dtlb_misses_2m",
    "stlb_misses_2m",
    "user_loads",
    "user_stores",
    "user_l1d_misses",
    "user_l2_misses",
    "user_llc_misses",
    "user_prefetched",
    "user_prefetched_far",
    "user_prefetched_memory",
    "user_itlb_misses",
    "user_dtlb_misses",
    "user_stlb_misses",
    "user_dtlb_misses_2m",
    "user_stlb_misses_2m",
)
"""Events that the plugin also counts with scope = "all"; no model weighs them."""

UNSEEN = (
    "io_exits",
    "privilege_switches",
    "cr3_writes",
    "control_writes",
    "swapgs",
    "irets",
    "msr_writes",
    "msr_reads",
    "tlb_invalidations",
    "xsaves",
    "verws",
    "ibpbs",
    "serializing",
)
"""Events that only kernels cause, or that none of the probe's programs causes: a fit to programs keeps their
weights.
"""


def counted_events(events: str, scope: str) -> tuple[str, ...]:
    """Return the events that a plugin with these options counts, in its order."""
    if events == "edges":
        return EVENTS[: EVENTS.index("rep_bytes")]
    return EVENTS + WITH_USER_CODE if scope == "all" else EVENTS
