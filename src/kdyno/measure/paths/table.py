"""The table of the paths: data/paths/paths.tsv, which a kernel that has them writes (`kdyno.list`)."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from kdyno.base.errors import UserError
from kdyno.base.lanes import Clock
from kdyno.base.measurement import Benchmark
from kdyno.base.text import format_count
from kdyno.measure.guest.job import TestOrder

ALL = "all"
"""Stands for every path."""
Half = Literal["fit", "held-out"]
"""The use of a path: to fit or to choose by, or to judge what was fitted or chosen."""
HALVES: tuple[Half, Half] = ("fit", "held-out")
"""They take turns in the table."""


class UnknownPath(UserError):
    message = "no path or group of paths is named {names}"
    hint = "did you mean {near}? groups of paths: {groups}; halves: {halves}; docs/silicon.md lists all paths"


@dataclass(frozen=True)
class KernelPath:
    """One path through a kernel: a benchmark that it runs on itself."""

    name: str
    group: str
    operation: str
    """A description of one operation."""
    unit: Literal["operation", "byte"]
    """The counted things: operations, or the bytes that they move."""
    bytes: int
    """Bytes of an operation; 0 where operations are counted."""
    kind: Literal["path", "library"]
    """`library`: a loop of a function of lib/ alone."""
    half: Half
    """By its place in the table."""

    def benchmark(self, clock: Clock) -> Benchmark:
        """Return the benchmark, as read in this clock."""
        is_cost = self.unit == "operation"
        return Benchmark(
            name=self.name,
            test=self.group,
            unit=clock.cost_unit if is_cost else clock.bandwidth_unit,
            direction="lower" if is_cost else "higher",
            description=self.operation,
        )

    def work(self, operations: int) -> int:
        """Return what so many operations do, in its unit."""
        return operations if self.unit == "operation" else operations * self.bytes


@cache
def paths() -> dict[str, KernelPath]:
    """Return all paths by name, in the order in which a kernel runs them."""
    text = (files("kdyno") / "data" / "paths" / "paths.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return {
        name: KernelPath(name, group, operation, unit, int(size), kind, HALVES[place % 2])  # type: ignore[arg-type]
        for place, (name, group, operation, unit, size, kind) in enumerate(rows)
    }


def path_orders(names: Sequence[str]) -> tuple[TestOrder, ...]:
    """Return the orders for these paths, each once, in the kernel's order. Names are those of paths, groups and
    halves, and `all`. Raise UnknownPath.
    """
    known = paths()
    groups = list(dict.fromkeys(path.group for path in known.values()))
    words = [ALL, *HALVES, *groups, *known]
    if unknown := [name for name in dict.fromkeys(names) if name not in words]:
        near = dict.fromkeys(difflib.get_close_matches(name, words, n=1, cutoff=0)[0] for name in unknown)
        texts = {"near": near, "groups": groups, "halves": HALVES}
        raise UnknownPath(names=" or ".join(unknown), **{key: ", ".join(text) for key, text in texts.items()})
    chosen = [path.name for path in known.values() if {path.name, path.group, path.half, ALL} & set(names)]
    return tuple(TestOrder(name=name) for name in chosen)


def list_loads(names: Sequence[str]) -> str:
    """Return the names of paths, tests and programs in one line; all paths together, and halves, are a number."""
    if set(names) == set(paths()):
        return format_count(len(names), "path")
    for half in HALVES:
        if set(names) == {path.name for path in paths().values() if path.half == half}:
            return f"{format_count(len(names), 'path')} (half {half})"
    return ", ".join(names)
