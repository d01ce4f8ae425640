"""The limits of a PMU record: more than any valid one holds, and no more than memory takes.

The plugin writes no larger record; it gives up and says so. The numbers are those of crates/pmu/src/limits.rs, which
also says how many of each real records have.
"""

from __future__ import annotations

from typing import Final

MOST: Final = {
    "body_bytes": 1 << 25,
    "functions": 1 << 16,
    "regions": 1 << 10,
    "iterations": 1 << 16,
    "executed_blocks": 1 << 20,
    "executed_branches": 1 << 20,
    "executed_functions": 1 << 17,
    "stack_nodes": 1 << 20,
    "stack_depth": 1 << 12,
    "trace_blocks": 1 << 21,
    "trace_steps": 1 << 21,
}
"""The limits on iterations, executed code, nodes and traces are for all regions together."""

LONGEST_NAME: Final = 1024
"""Bytes of a function's name; the kernel's own tools allow at most 512."""


class Unsound(ValueError):
    """A body is invalid; the text says why."""


class Room:
    """The room that is left in a record while it is read."""

    def __init__(self) -> None:
        self._left = dict(MOST)

    def take(self, thing: str, number: int) -> int:
        """Return the number. Raise Unsound if it exceeds the limit, before anything is made of it."""
        self._left[thing] -= number
        if self._left[thing] < 0:
            raise Unsound(f"it has more than {MOST[thing]:,} {limit_name(thing)}")
        return number


def limit_name(thing: str) -> str:
    return thing.replace("_", " ")
