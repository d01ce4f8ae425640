"""Choosing what of a record is meant (regions, contexts), and adding up what was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.base.errors import UserError
from kdyno.measure.guest.pmu_parts import BLOCK, BRANCH, CONTEXTS, ContextCounts, Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.measure.guest.pmu_values import Counts

WORK = ("task", "exception")
"""The contexts of a benchmark's own work: interrupts come when they come."""


class NoSuchRegion(UserError):
    message = "the record has no region {named}"
    hint = "it has {known}"


def choose(record: PmuRecord, named: Sequence[str]) -> list[Region]:
    """The regions of these benchmarks, named by name, by test (all of its benchmarks) or by index; all if none is."""
    if not named:
        return list(record.regions.values())
    chosen: dict[int, Region] = {}
    for name in named:
        matches = {index: region for index, region in record.regions.items() if _is_meant(record, index, name)}
        if not matches:
            raise NoSuchRegion(named=name, known=", ".join(map(record.benchmark_name, record.regions)))
        chosen |= matches
    return [chosen[index] for index in sorted(chosen)]


def _is_meant(record: PmuRecord, benchmark: int, named: str) -> bool:
    name = record.benchmark_name(benchmark)
    return named.lstrip("#") == str(benchmark) or name == named or name.startswith(f"{named}.")


def added(regions: Sequence[Region], contexts: Sequence[str] = WORK) -> ContextCounts:
    """One context with the sums of all that were chosen."""
    parts = [region.contexts[CONTEXTS.index(name)] for region in regions for name in contexts]
    functions: dict[int, Counts] = {}
    for part in parts:
        for index, events in part.functions.items():
            functions[index] = functions[index] + events if index in functions else events
    return ContextCounts(
        blocks=summed(_joined([part.blocks for part in parts], BLOCK), ("start", "instructions")),
        branches=summed(_joined([part.branches for part in parts], BRANCH), ("source", "target", "kind")),
        functions=dict(sorted(functions.items())),
    )


def summed(rows: NDArray[Any], keys: Sequence[str]) -> NDArray[Any]:
    """The rows ordered by `keys`, those with equal keys as one, with the sum of their counts; none that never ran."""
    rows = rows[rows["count"] > 0]
    if not len(rows):
        return rows
    rows = rows[np.lexsort([rows[key] for key in reversed(keys)])]
    changes = np.logical_or.reduce([rows[key][1:] != rows[key][:-1] for key in keys])
    first = np.concatenate(([0], np.flatnonzero(changes) + 1))
    sums = rows[first].copy()
    sums["count"] = np.add.reduceat(rows["count"], first)
    return sums


def _joined(parts: Sequence[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype)
