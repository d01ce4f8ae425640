"""Arithmetic on the counters of an instrumented kernel: differences and sums of snapshots.

A snapshot is one array of all counters, in the order of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kdyno.base.errors import UserError

Counts = NDArray[np.uint64]
LARGEST = 2**61 - 1
"""The largest count that a compiler accepts: gcc stores 61 bits (profile_count in gcc/profile-count.h)."""


class CountersWentBack(UserError):
    message = "{name}: {number:,} counters are lower in the later snapshot ({after:,} after {before:,})"
    hint = "take the snapshots in order, and do not reset counters between them"


class CountTooLarge(UserError):
    message = "{name}: a count of {count:.3g} is more than a compiler accepts"
    hint = "scale the counts to a smaller sum"


class NothingCounted(UserError):
    message = "{name} has no counts: all {counters:,} counters are 0"
    hint = "run a workload in the instrumented kernel, and take the snapshot after it"


def require_counts(counts: Counts, name: str) -> None:
    """Raise NothingCounted if all counters of the training `name` are 0."""
    if not counts.any():
        raise NothingCounted(name=name, counters=len(counts))


def difference(after: Counts, before: Counts, name: str) -> Counts:
    """Return the counts between two snapshots of equal length. Raises CountersWentBack."""
    back = np.flatnonzero(after < before)
    if len(back):
        first = int(back[0])
        raise CountersWentBack(name=name, number=len(back), after=int(after[first]), before=int(before[first]))
    counted: Counts = after - before
    return counted


def sum_counts(parts: Sequence[tuple[Counts, float]], name: str) -> Counts:
    """Return the sum of at least one array of equal length, each times its weight (0 or more).

    With integral weights every count is exact. Otherwise sums are rounded, and counts above zero stay at least one, so
    that no compiler takes the code for dead. Raises CountTooLarge.
    """
    scaled = np.zeros(len(parts[0][0]))
    for counts, weight in parts:
        scaled += counts * float(weight)
    largest = float(scaled.max(initial=0))
    if largest > LARGEST:
        raise CountTooLarge(name=name, count=largest)
    if all(float(weight).is_integer() for _, weight in parts):
        exact = np.zeros(len(scaled), np.uint64)
        for counts, weight in parts:
            exact += counts * np.uint64(weight)
        return exact
    ran = np.any([counts > 0 for counts, weight in parts if weight > 0], axis=0)
    return np.maximum(np.rint(scaled), ran).astype(np.uint64)
