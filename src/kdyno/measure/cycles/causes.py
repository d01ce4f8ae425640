"""The causes of each event's cycles: one row for each event that a model may weigh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Category = Literal[
    "user",
    "switches",
    "rep",
    "fetch",
    "instructions",
    "dependencies",
    "calls",
    "data",
    "mispredictions",
    "branches",
]
"""In the order of tables and bars: first those that are mostly beyond a compiler of the kernel."""

CATEGORIES: tuple[Category, ...] = get_args(Category)

TITLES: dict[Category, str] = {
    "user": "user code",
    "switches": "privilege switches, serializing",
    "rep": "rep",
    "fetch": "fetch",
    "instructions": "instructions",
    "dependencies": "dependencies",
    "calls": "calls",
    "data": "data",
    "mispredictions": "mispredictions",
    "branches": "branches",
}

USER = "user code is not compiled with the kernel"
HARDWARE = "user code, the hardware or a mitigation asks for it, and the kernel writes it in assembly"
ORDER = "the source demands this order of accesses"
COPIED = "the source copies, clears or compares so many bytes, whatever instructions do it"
PAGES = "the code doesn't choose which pages of data are touched, and when translations are flushed"
DEVICE = "the source accesses a device here"


@dataclass(frozen=True)
class Cause:
    """The cause of an event's cycles, and who could save them."""

    category: Category
    fixed: str = ""
    """The reason why no compiler of the kernel, and no layout, can change it; empty if one might."""
    is_layout: bool = False
    """Whether it depends on where code lies: all of it might go in another layout of the same code."""


CAUSES: dict[str, Cause] = {
    "user_instructions": Cause("user", USER),
    "user_rep_iterations": Cause("user", USER),
    "privilege_switches": Cause("switches", HARDWARE),
    "serializing": Cause("switches", HARDWARE),
    "cr3_writes": Cause("switches", HARDWARE),
    "control_writes": Cause("switches", HARDWARE),
    "swapgs": Cause("switches", HARDWARE),
    "irets": Cause("switches", HARDWARE),
    "msr_writes": Cause("switches", HARDWARE),
    "msr_reads": Cause("switches", HARDWARE),
    "tlb_invalidations": Cause("switches", HARDWARE),
    "xsaves": Cause("switches", HARDWARE),
    "verws": Cause("switches", HARDWARE),
    "ibpbs": Cause("switches", HARDWARE),
    "fences": Cause("switches", ORDER),
    "full_fences": Cause("switches", ORDER),
    "stall_fences": Cause("switches", ORDER),
    "io_exits": Cause("switches", DEVICE),
    "rep_instructions": Cause("rep"),  # compilers choose them for copies of a size that they know
    "rep_iterations": Cause("rep", COPIED),
    "rep_bytes": Cause("rep", COPIED),
    "stall_rep": Cause("rep"),
    "stall_fetch": Cause("fetch", is_layout=True),
    "l1i_misses": Cause("fetch", is_layout=True),
    "itlb_misses": Cause("fetch", is_layout=True),
    "btb_misses": Cause("fetch", is_layout=True),
    "op_cache_misses": Cause("fetch", is_layout=True),
    "instructions": Cause("instructions"),
    "slots": Cause("instructions"),
    "multiplies": Cause("instructions"),
    "divides": Cause("instructions"),
    "stall_dependencies": Cause("dependencies"),
    "locked": Cause("dependencies", ORDER),
    "calls": Cause("calls"),
    "returns": Cause("calls"),
    "loads": Cause("data"),
    "stores": Cause("data"),
    "l1d_misses": Cause("data"),
    # Code and data share these: nobody counts which of them a miss belongs to, so a bound must count all as code's.
    "l2_misses": Cause("data", is_layout=True),
    "llc_misses": Cause("data", is_layout=True),
    "stlb_misses": Cause("data", is_layout=True),
    "prefetched": Cause("data"),
    "prefetched_far": Cause("data"),
    "prefetched_memory": Cause("data"),
    "dtlb_misses": Cause("data", PAGES),
    "stall_translation": Cause("data", PAGES),
    "stall_l2": Cause("data"),
    "stall_l2_chained": Cause("data"),
    "stall_llc": Cause("data"),
    "stall_llc_chained": Cause("data"),
    "stall_memory": Cause("data"),
    "stall_memory_chained": Cause("data"),
    "mispredicted_conditional": Cause("mispredictions"),
    "mispredicted_indirect": Cause("mispredictions"),
    "mispredicted_returns": Cause("mispredictions"),
    "stall_branches": Cause("mispredictions"),
    "taken_branches": Cause("branches", is_layout=True),
    "jumps": Cause("branches", is_layout=True),
    "not_taken_branches": Cause("branches"),
    "indirect_branches": Cause("branches"),
}
"""Causes by event; a test compares them with measure/cycles/events.py."""
