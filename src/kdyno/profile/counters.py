"""Counters of an instrumented kernel as numbers: what was counted between two snapshots, and how snapshots add up.

A snapshot is one array of all counters, in the order in which the kernel has them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kdyno.base.errors import UserError

Counts = NDArray[np.uint64]
LARGEST = 2**61 - 1
"""What a compiler takes for a count: gcc keeps 61 bits of it (profile_count in gcc/profile-count.h)."""


class CountersWentBack(UserError):
    message = "{name}: {number:,} counters are lower in the later snapshot ({after:,} after {before:,})"
    hint = "nothing may reset counters between two snapshots, and they are taken in the order of time"


class CountTooLarge(UserError):
    message = "{name}: a count of {count:.3g} is more than a compiler takes"
    hint = "scale the counts to a smaller sum"


class NothingCounted(UserError):
    message = "{name} has no counts: all {counters:,} counters are 0"
    hint = "train on something that runs, in the instrumented kernel; was the snapshot taken after it?"


def require_counts(counts: Counts, name: str) -> None:
    """Raise NothingCounted if all counters are 0, in training `name`."""
    if not counts.any():
        raise NothingCounted(name=name, counters=len(counts))


def difference(after: Counts, before: Counts, name: str) -> Counts:
    """What was counted between two snapshots; both of one length. Raises CountersWentBack."""
    back = np.flatnonzero(after < before)
    if len(back):
        first = int(back[0])
        raise CountersWentBack(name=name, number=len(back), after=int(after[first]), before=int(before[first]))
    counted: Counts = after - before
    return counted


def added(parts: Sequence[tuple[Counts, float]], name: str) -> Counts:
    """The sum of at least one array, each times its weight (0 or more); all of one length.

    Whole weights keep every count exact. With others each sum is rounded, and what ran at all keeps a count of at least
    one, so that no compiler takes it for dead. Raises CountTooLarge.
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
