"""The body of a PMU record, read number by number into its parts.

The guest decides what is counted: lists are bounded before anything is made of them, and inconsistent data is Unsound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdyno.measure.guest.pmu_limits import LONGEST_NAME, MOST, Room, Unsound
from kdyno.measure.guest.pmu_parts import (
    BLOCK,
    BRANCH,
    CONTEXTS,
    TRACE_BLOCK,
    Array,
    ContextCounts,
    Function,
    Region,
    StackNode,
    Trace,
)
from kdyno.measure.guest.pmu_values import Counts, Values, unzigzag


@dataclass(frozen=True, eq=False)
class PmuBody:
    """The content of a body."""

    functions: tuple[Function, ...]
    regions: dict[int, Region]
    unmeasured: Array | None


def read_body(numbers: bytes, events: int, *, is_traced: bool, has_unmeasured: bool) -> PmuBody:
    """Read an inflated body whose vectors have so many events. Raise Unsound."""
    values, room = Values(numbers), Room()
    functions = _functions(values, room)
    regions: dict[int, Region] = {}
    latest = -1
    for _ in range(room.take("regions", values.count(1))):
        region = _region(values, room, events, len(functions), is_traced=is_traced)
        if region.benchmark <= latest:
            raise Unsound("its regions are not in order")
        latest = region.benchmark
        regions[latest] = region
    unmeasured = _blocks(values, room) if has_unmeasured else None
    values.expect_end()
    return PmuBody(functions, regions, unmeasured)


def _functions(values: Values, room: Room) -> tuple[Function, ...]:
    functions = []
    address = 0
    for _ in range(room.take("functions", values.count(3))):
        address = (address + values.number()) & 0xFFFF_FFFF_FFFF_FFFF
        functions.append(Function(address, values.number(), values.text(LONGEST_NAME)))
    return tuple(functions)


def _table(values: Values, room: Room, things: str, columns: int) -> Counts:
    """Read a number of rows, then the rows."""
    return values.rows(room.take(things, values.count(columns)), columns)


def _region(values: Values, room: Room, events: int, functions: int, *, is_traced: bool) -> Region:
    benchmark = values.number(1 << 31)
    rows = _table(values, room, "iterations", 1 + 3 * events)
    if np.any(rows[1:, 0] <= rows[:-1, 0]):
        raise Unsound("its iterations are not in order")
    contexts = [_context(values, room, events, functions) for _ in CONTEXTS]
    return Region(
        benchmark=benchmark,
        iterations={int(row[0]): row[1:].reshape(3, events) for row in rows},
        contexts=(contexts[0], contexts[1], contexts[2]),
        stacks=_stacks(_table(values, room, "stack_nodes", 4), functions),
        trace=_trace(values, room) if is_traced else None,
    )


def _trace(values: Values, room: Room) -> Trace:
    rows = _table(values, room, "trace_blocks", 5)
    blocks = np.empty(len(rows), TRACE_BLOCK)
    blocks["start"] = np.cumsum(unzigzag(rows[:, 0]), dtype=np.uint64)
    for column, name in enumerate(("last", "length"), start=1):
        blocks[name] = _check_range(1 << 32, rows[:, column], name)
    blocks["ops"] = _check_range(1 << 32, rows[:, 3] >> np.uint64(2), "ops")
    blocks["is_call"] = rows[:, 3] >> np.uint64(1) & np.uint64(1)
    blocks["is_branch"] = rows[:, 3] & np.uint64(1)
    blocks["time"] = _check_range(1 << 32, rows[:, 4], "time")
    steps = _table(values, room, "trace_steps", 1)[:, 0]
    _check_range(len(blocks), steps >> np.uint64(2), "block of a trace")
    return Trace(blocks, steps, values.number())


def _blocks(values: Values, room: Room) -> Array:
    rows = _table(values, room, "executed_blocks", 5)
    blocks = np.empty(len(rows), BLOCK)
    blocks["start"] = np.cumsum(unzigzag(rows[:, 0]), dtype=np.uint64)
    for column, name in enumerate(("instructions", "last", "length"), start=1):
        blocks[name] = _check_range(1 << 32, rows[:, column], name)
    blocks["count"] = rows[:, 4]
    return blocks


def _context(values: Values, room: Room, events: int, functions: int) -> ContextCounts:
    blocks = _blocks(values, room)
    rows = _table(values, room, "executed_branches", 4)
    branches = np.empty(len(rows), BRANCH)
    branches["source"] = np.cumsum(unzigzag(rows[:, 0]), dtype=np.uint64)
    branches["target"] = branches["source"] + unzigzag(rows[:, 1])
    branches["kind"] = _check_range(6, rows[:, 2], "kind of branch")
    branches["count"] = rows[:, 3]
    rows = _table(values, room, "executed_functions", 1 + events)
    indices = np.cumsum(_check_range(max(functions, 1), rows[:, 0], "function"), dtype=np.uint64)
    _check_range(functions, indices, "function")
    if np.any(rows[1:, 0] == 0):
        raise Unsound("a function comes twice")
    return ContextCounts(blocks, branches, {int(index): row[1:] for index, row in zip(indices, rows, strict=True)})


def _stacks(rows: Counts, functions: int) -> tuple[StackNode, ...]:
    if np.any(rows[:, 0] > np.arange(len(rows), dtype=np.uint64)):
        raise Unsound("a stack node comes before its parent")
    _check_range(functions, rows[:, 1], "function")
    _check_range(4, rows[:, 2], "kind of stack node")
    depths = [0]
    for parent in rows[:, 0].tolist():
        depths.append(depths[parent] + 1)
    if max(depths) > MOST["stack_depth"]:
        raise Unsound(f"a stack is deeper than {MOST['stack_depth']:,}")
    return tuple(StackNode(*row) for row in rows.tolist())


def _check_range(limit: int, column: Counts, what: str) -> Counts:
    if column.size and int(column.max()) >= limit:
        raise Unsound(f"{what} {int(column.max())} is out of range")
    return column
