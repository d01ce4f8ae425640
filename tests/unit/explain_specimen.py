"""A kernel as simple as an explanation needs it: functions, what they cost, whom they call."""

from __future__ import annotations

from collections import defaultdict
from typing import Self

import numpy as np

from kdyno.measure.guest.pmu_parts import (
    BLOCK,
    BRANCH,
    CALL,
    CONTEXTS,
    STACK_CALL,
    ContextCounts,
    Function,
    Region,
    StackNode,
)
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.understand.explain.measured import MeasuredRegion

NAMES = ("instructions", "taken_branches", "calls", "l1d_misses", "locked", "user_instructions", "serializing", "slots")
TEXT = 0xFFFFFFFF81000000
SPACING = 4096
"""Bytes from one function to the next: each has a page of its own."""


class Kernel:
    """Collects what a region did; amounts are per operation."""

    def __init__(
        self, work: int = 1000, iterations: int = 4, family: str | None = "znver4", events: str = "all"
    ) -> None:
        self.work, self.iterations, self.family, self.events = work, iterations, family, events
        self.names: list[str] = []
        self.sizes: dict[str, int] = {}
        self.counts: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        self.calls: list[tuple[str, str, float]] = []
        self.stacks: list[StackNode] = []

    def function(
        self,
        name: str,
        instructions: float,
        *,
        size: int = 128,
        context: str = "task",
        calls: dict[str, float] | None = None,
        **events: float,
    ) -> Self:
        """A function that executes so many instructions and other events, and calls others."""
        self._index(name)
        self.sizes[name] = size
        self.counts[context, name] = {"instructions": instructions, "slots": instructions, **events}
        self.calls += [(name, callee, count) for callee, count in (calls or {}).items()]
        return self

    def stack(self, path: str, instructions: float, kind: int = STACK_CALL) -> Self:
        """The last function of `a;b;c`, called from the others, which must have been named before."""
        *callers, name = path.split(";")
        parent = 0
        for caller in callers:
            [parent] = (
                number
                for number, node in enumerate(self.stacks, start=1)
                if node.parent == parent and node.function == self._index(caller)
            )
        self.stacks.append(StackNode(parent, self._index(name), kind, round(instructions * self.work)))
        return self

    def _index(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def _address(self, name: str) -> int:
        return TEXT + SPACING * self._index(name)

    def record(self, benchmark: int = 0) -> PmuRecord:
        for _, callee, _ in self.calls:
            self._index(callee)
        contexts = [self._context(name) for name in CONTEXTS]
        totals = np.array([sum(context.functions.values(), np.zeros(len(NAMES), np.uint64)) for context in contexts])
        share = totals // self.iterations
        rest = totals - share * np.uint64(self.iterations - 1)
        iterations = {number: share if number else rest for number in range(self.iterations)}
        return PmuRecord(
            plugin="0.1.0",
            scope="kernel",
            events=self.events,
            image=None,
            family=self.family,
            names=NAMES,
            opened=self.iterations,
            unclosed=None,
            functions=tuple(Function(self._address(name), self.sizes.get(name, 16), name) for name in self.names),
            regions={
                benchmark: Region(benchmark, iterations, (contexts[0], contexts[1], contexts[2]), tuple(self.stacks))
            },
        )

    def measured(self) -> MeasuredRegion:
        record = self.record()
        return MeasuredRegion(record, record.regions[0], float(self.work))

    def _context(self, context: str) -> ContextCounts:
        functions: dict[int, np.ndarray] = {}
        blocks, branches = [], []
        for (where, name), events in self.counts.items():
            if where != context:
                continue
            counts = [round(events.get(event, 0) * self.work) for event in NAMES]
            functions[self._index(name)] = np.array(counts, np.uint64)
            blocks.append((self._address(name), 1, 0, self.sizes[name], counts[0]))
            branches += [
                (self._address(name) + 8, self._address(callee), CALL, round(count * self.work))
                for caller, callee, count in self.calls
                if caller == name
            ]
        return ContextCounts(
            np.array(blocks, BLOCK), np.array(sorted(branches), BRANCH), dict(sorted(functions.items()))
        )


def pair() -> tuple[Kernel, Kernel]:
    """Reading a file, before and after a compiler inlined fput and a patch added a lock."""
    before = (
        Kernel()
        .function("entry_SYSCALL_64", 40)
        .function("ksys_read", 60, calls={"vfs_read": 1, "fput": 12})
        .function("vfs_read", 100, calls={"copy_out.isra.0": 1}, locked=1)
        .function("copy_out.isra.0", 30, l1d_misses=0.5)
        .function("fput", 96, size=64)
        .function("asm_exc_page_fault", 20, context="exception")
        .function("tick", 500, context="interrupt", l1d_misses=9)
        .stack("entry_SYSCALL_64", 40, kind=3)
        .stack("entry_SYSCALL_64;ksys_read", 60)
        .stack("entry_SYSCALL_64;ksys_read;fput", 96)
        .stack("entry_SYSCALL_64;ksys_read;vfs_read", 100)
        .stack("entry_SYSCALL_64;ksys_read;vfs_read;copy_out.isra.0", 30)
        .stack("entry_SYSCALL_64;ksys_read;vfs_read;copy_out.isra.0;asm_exc_page_fault", 20, kind=1)
        .stack("entry_SYSCALL_64;ksys_read;tick", 500, kind=2)
    )
    after = (
        Kernel()
        .function("entry_SYSCALL_64", 40)
        .function("ksys_read", 120, size=400, calls={"vfs_read": 1})
        .function("vfs_read", 100, calls={"copy_out": 1, "take_lock": 1}, locked=1)
        .function("copy_out", 30, l1d_misses=0.5)
        .function("take_lock", 50, locked=6, serializing=6)
        .function("asm_exc_page_fault", 20, context="exception")
        .function("tick", 900, context="interrupt", l1d_misses=90)
        .stack("entry_SYSCALL_64", 40, kind=3)
        .stack("entry_SYSCALL_64;ksys_read", 120)
        .stack("entry_SYSCALL_64;ksys_read;vfs_read", 100)
        .stack("entry_SYSCALL_64;ksys_read;vfs_read;copy_out", 30)
        .stack("entry_SYSCALL_64;ksys_read;vfs_read;take_lock", 50)
        .stack("entry_SYSCALL_64;ksys_read;vfs_read;copy_out;asm_exc_page_fault", 20, kind=1)
        .stack("entry_SYSCALL_64;ksys_read;tick", 900, kind=2)
    )
    return before, after
