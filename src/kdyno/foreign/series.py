"""What one file of a benchmark program says, before files are put together."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kdyno.measurement import Direction


@dataclass(frozen=True)
class Series:
    """The values of one benchmark in one file, in the order of measuring."""

    benchmark: str
    unit: str
    values: tuple[float, ...]
    command: str = ""
    """What was run, where a file has several commands that may be the variants."""
    error: float | None = None
    """Standard error of the only value, which is a mean, as a fraction of it."""
    direction: Direction | None = None
    """None where the unit tells."""


@dataclass(frozen=True)
class Reading:
    """One file."""

    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()
    """What to say of the file; the same notes of several files are said once."""


def positive(series: list[Series]) -> tuple[tuple[Series, ...], tuple[str, ...]]:
    """Part what can be compared from what can't: (series whose values all are positive, what to say of the others)."""
    good = tuple(each for each in series if each.values and all(0 < x < math.inf for x in each.values))
    bad: dict[str, float] = {}
    for each in series:
        for x in each.values:
            if not 0 < x < math.inf:
                bad.setdefault(each.benchmark, x)
    return good, tuple(
        f"{benchmark} is {x:g}, and ratios need positive numbers: left out" for benchmark, x in bad.items()
    )
