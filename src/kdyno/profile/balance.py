"""Merging several benchmarks into one profile, each with the same weight, however long it ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.edges import EdgeProfile, edge_profile
from kdyno.profile.select import WORK, sum_contexts

TOTAL = 10**9
"""The kernel instructions in a balanced profile, over all benchmarks of all records. It is fixed, so that thresholds of
hot code have the same meaning for every training."""


def weights(records: Sequence[PmuRecord], contexts: Sequence[str] = WORK) -> list[dict[int, float]]:
    """Return, for each record, the factor by region that gives all regions an equal part of TOTAL.

    A region without executed kernel code has no factor, and is omitted.
    """
    executed = [{index: _instructions(record, index, contexts) for index in record.regions} for record in records]
    parts = sum(count > 0 for counts in executed for count in counts.values())
    return [{index: TOTAL / parts / count for index, count in counts.items() if count > 0} for counts in executed]


def balanced_edges(records: Sequence[PmuRecord], contexts: Sequence[str] = WORK) -> EdgeProfile:
    """Merge the ranges and branches of records of one vmlinux into a profile in which all regions have the same weight.

    Everything that ran keeps a count of at least one.
    """
    ranges: dict[tuple[int, int], float] = {}
    branches: dict[tuple[int, int], float] = {}
    for edges, weight in _weight_profiles(records, contexts):
        for start, last, count in edges.ranges:
            ranges[start, last] = ranges.get((start, last), 0.0) + count * weight
        for source, target, count in edges.branches:
            branches[source, target] = branches.get((source, target), 0.0) + count * weight
    return EdgeProfile(_rows(ranges), _rows(branches))


def _weight_profiles(records: Sequence[PmuRecord], contexts: Sequence[str]) -> Iterator[tuple[EdgeProfile, float]]:
    for record, by_region in zip(records, weights(records, contexts), strict=True):
        for index, weight in by_region.items():
            yield edge_profile(record, [record.regions[index]], contexts), weight


def _rows(counts: dict[tuple[int, int], float]) -> list[tuple[int, int, int]]:
    return [(first, second, max(1, round(count))) for (first, second), count in sorted(counts.items())]


def _instructions(record: PmuRecord, index: int, contexts: Sequence[str]) -> int:
    blocks = sum_contexts([record.regions[index]], contexts).blocks
    return int(np.dot(blocks["instructions"].astype(np.uint64), blocks["count"])) if len(blocks) else 0
