"""The parts of a PMU record: functions, and the counts of a region by context, call stack and trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.measure.guest.pmu_values import Counts

CONTEXTS = ("task", "exception", "interrupt")
BLOCK = np.dtype([("start", "<u8"), ("instructions", "<u4"), ("last", "<u4"), ("length", "<u4"), ("count", "<u8")])
"""A straight run of instructions: `last` is the offset of its last instruction, `length` its bytes."""
BRANCH = np.dtype([("source", "<u8"), ("target", "<u8"), ("kind", "u1"), ("count", "<u8")])
"""A taken transfer; `source` is the address of the instruction."""
TRACE_BLOCK = np.dtype(
    [
        ("start", "<u8"),
        ("last", "<u4"),
        ("length", "<u4"),
        ("ops", "<u4"),
        ("is_call", "?"),
        ("is_branch", "?"),
        ("time", "<u4"),
    ]
)
"""`last` is the offset of the last instruction, `length` its bytes; `is_branch`: the last instruction is a branch,
`is_call`: a call or a return; `time`: from the arrival of the block until all of it was dispatched, in TIME_PARTS of a
cycle; a mean.
"""
TIME_PARTS = 16
THROUGH, TAKEN, UNEXPECTED, ENTERED = range(4)
"""The way in which a block follows another: it is behind it; by a taken branch; by either, mispredicted; otherwise."""
CONDITIONAL, JUMP, CALL, RETURN, INDIRECT_JUMP, INDIRECT_CALL = range(6)
"""Kinds of branches."""
STACK_CALL, STACK_EXCEPTION, STACK_INTERRUPT, STACK_ENTRY = range(4)
"""Kinds of stack nodes: how its function was entered."""
UNKNOWN = "[unknown]"
"""The function, at address 0, that stands for code in no function of the vmlinux."""

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Function:
    address: int
    size: int
    name: str


@dataclass(frozen=True, eq=False)
class ContextCounts:
    """The counts of one context in one region, summed over its iterations."""

    blocks: Array
    """An array of dtype BLOCK."""
    branches: Array
    """An array of dtype BRANCH."""
    functions: dict[int, Counts]
    """Index of the function -> events[E] of the code inside it."""


@dataclass(frozen=True, slots=True)
class StackNode:
    parent: int
    """0 for the root, else the 1-based index of an earlier node."""
    function: int
    kind: int
    instructions: int
    """The events of the node itself, without its callees'."""


@dataclass(frozen=True, eq=False)
class Trace:
    """The blocks that one iteration of a region fetched, in their order."""

    blocks: Array
    """An array of dtype TRACE_BLOCK, by start."""
    steps: Counts
    """u64[n]: 4 x the index of the block + how it came after the one before (THROUGH ... ENTERED)."""
    left_out: int
    """Further steps that the plugin had no room for."""


@dataclass(frozen=True, eq=False)
class Region:
    """The measured loops of one benchmark."""

    benchmark: int
    iterations: dict[int, Counts]
    """Iteration -> events[3, E], by context."""
    contexts: tuple[ContextCounts, ContextCounts, ContextCounts]
    stacks: tuple[StackNode, ...]
    trace: Trace | None = None
    """The trace of the last iteration, if the plugin was asked for one."""
