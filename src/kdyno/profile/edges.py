"""Ranges of executed instructions and taken branches in kernel text, from which all exports for compilers are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdyno.measure.guest.pmu_parts import Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.functions import NOWHERE, FunctionMap
from kdyno.profile.select import WORK, sum_contexts, sum_rows


@dataclass(frozen=True)
class EdgeProfile:
    """Ranges and branches, both in ascending order, each key once."""

    ranges: list[tuple[int, int, int]]
    """The start of the first instruction, the start of the last one, and the count."""
    branches: list[tuple[int, int, int]]
    """The address of the branch, its target, and the count."""


def edge_profile(record: PmuRecord, regions: Sequence[Region], contexts: Sequence[str] = WORK) -> EdgeProfile:
    """Return the ranges and branches of these regions with both ends in functions of the vmlinux."""
    context = sum_contexts(regions, contexts)
    functions = FunctionMap(record.functions)
    blocks = sum_rows(context.blocks, ("start", "last"))
    ends = blocks["start"] + blocks["last"]
    known = (functions.find(blocks["start"]) != NOWHERE) & (functions.find(ends) != NOWHERE)
    ranges = np.stack([blocks["start"], ends, blocks["count"]], axis=1)[known]
    rows = sum_rows(context.branches, ("source", "target"))
    known = (functions.find(rows["source"]) != NOWHERE) & (functions.find(rows["target"]) != NOWHERE)
    branches = np.stack([rows["source"], rows["target"], rows["count"]], axis=1)[known]
    return EdgeProfile([(a, b, c) for a, b, c in ranges.tolist()], [(a, b, c) for a, b, c in branches.tolist()])
