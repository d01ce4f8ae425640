"""The start of a search for an order: the functions that ran, clustered by their calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kdyno.measure.guest.pmu_parts import RETURN
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.balance import weights
from kdyno.profile.order_c3 import c3
from kdyno.profile.order_units import Text
from kdyno.profile.select import WORK, sum_contexts


def start_order(records: Sequence[PmuRecord], text: Text) -> list[int]:
    """Return the indices of the units that ran and can be moved, in order. All benchmarks have the same weight."""
    executed: Counter[int] = Counter()
    calls: Counter[tuple[int, int]] = Counter()
    for record, by_region in zip(records, weights(records), strict=True):
        for index, weight in by_region.items():
            context = sum_contexts([record.regions[index]], WORK)
            blocks, branches = context.blocks, context.branches
            counts = blocks["count"] * blocks["instructions"].astype(np.uint64)
            for unit, count in zip(units_at(text, blocks["start"]).tolist(), counts.tolist(), strict=True):
                executed[unit] += count * weight
            ends = (units_at(text, branches["source"]), units_at(text, branches["target"]))
            changes = (branches["kind"] != RETURN) & (ends[0] != ends[1])
            columns = (ends[0][changes], ends[1][changes], branches["count"][changes])
            for caller, callee, count in zip(*(column.tolist() for column in columns), strict=True):
                calls[caller, callee] += count * weight
    movable = {unit: count for unit, count in executed.items() if unit >= 0 and text.units[unit].kind == "movable"}
    sizes = {unit: text.units[unit].end - text.units[unit].start for unit in movable}
    return c3(sizes, movable, calls)


def units_at(text: Text, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the index of the unit at each address; -1 for none."""
    starts = np.array([unit.start for unit in text.units], np.uint64)
    ends = np.array([unit.end for unit in text.units], np.uint64)
    index = np.searchsorted(starts, addresses, side="right").astype(np.int64) - 1
    return np.where((index >= 0) & (addresses < ends[index]), index, -1)
