"""Collapsed stacks, the input of flame graphs: one line `a;b;c N` per stack, with the instructions at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kdyno.base.text import clean
from kdyno.measure.guest.pmu_parts import STACK_EXCEPTION, STACK_INTERRUPT, Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.select import WORK


def stacks(record: PmuRecord, regions: Sequence[Region], contexts: Sequence[str] = WORK) -> dict[tuple[str, ...], int]:
    """Return instructions by stack of function names, outermost first. Entries of exceptions count as functions."""
    names = [clean(function.name).replace(";", ":").replace(" ", "_") for function in record.functions]
    counts: Counter[tuple[str, ...]] = Counter()
    for region in regions:
        paths: list[tuple[str, ...]] = [()]
        inside = ["task"]
        for node in region.stacks:
            paths.append((*paths[node.parent], names[node.function]))
            inside.append(_context(inside[node.parent], node.kind))
            if node.instructions and inside[-1] in contexts:
                counts[paths[-1]] += node.instructions
    return dict(sorted(counts.items()))


def _context(outer: str, kind: int) -> str:
    """Return the context of a nested node: everything within an interrupt is in the context of the interrupt."""
    if kind == STACK_INTERRUPT or outer == "interrupt":
        return "interrupt"
    return "exception" if kind == STACK_EXCEPTION else outer


def collapse_stacks(record: PmuRecord, regions: Sequence[Region], contexts: Sequence[str] = WORK) -> str:
    """Return the stacks in the format of flamegraph.pl (https://github.com/brendangregg/FlameGraph)."""
    counts = stacks(record, regions, contexts)
    return "".join(f"{';'.join(path)} {instructions}\n" for path, instructions in counts.items())
