"""The growth of a kernel's own memory under load: a robust slope with an interval. Pure.

Loads start and end, so that single looks vary. A soak is divided into blocks of equal time, and the median of each
block counts. The slope is that of Theil and Sen: the median of the slopes of all pairs of blocks, which is robust
against outliers. Its interval assumes independent blocks. They are not independent if a round of a load is longer than
a block. The interval is then widened for the effective number of blocks, n (1 - r) / (1 + r), where r is the
autocorrelation.

Memory for the work of programs is given back when they end. A leak is memory that is still used at rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.measure.guest.soak import MemoryField, MemoryLook

WATCHED: tuple[MemoryField, ...] = ("SUnreclaim", "KernelStack", "PageTables", "VmallocUsed", "Percpu")
"""Fields of memory that only the kernel can give back."""
BLOCKS = 40
WARM_UP = 0.25
"""The share of the time in which caches fill and servers grow to their size. It is recorded, and not judged."""
WARM_UP_HOURS = 1 / 6
"""The shortest warm-up."""
SHORTEST_HOURS = 1 / 3
"""The shortest time after the warm-up: less doesn't distinguish a leak from loads that start and end."""
FEWEST = 8
"""The fewest blocks for a slope."""
COVERAGE = 0.95
"""The coverage of the intervals of all WATCHED together; each single coverage is larger (Bonferroni)."""
MOST_ALIKE = 0.95
"""The largest autocorrelation: nearer to 1 the interval would have no meaning."""
MARGIN_MB_PER_HOUR = 1.0
"""Smaller growth counts as no growth: 24 MB a day."""
KB_PER_MB = 1024
SECONDS_PER_HOUR = 3600

Growth = Literal["grows", "given back", "no growth", "undecided", "not judged"]


class GrowthWindow(Frozen):
    """Medians over a part of a soak in MB, for the fields that the kernel has."""

    hours: float
    """The hours from the beginning of the soak to the middle of the block."""
    mb: dict[MemoryField, float]


class Slope(Frozen):
    """The change of one field after the warm-up, in MB per hour."""

    field: MemoryField
    estimate: float | None
    low: float | None
    high: float | None
    """The ends of the interval; COVERAGE holds for all fields together."""
    growth: Growth

    def in_words(self) -> str:
        """Return the slope in words: `grows by 3.1 MB/h (2.2 to 4.0)`."""
        if self.estimate is None:
            return "not judged: the soak is too short"
        interval = f"({self.low:+.2f} to {self.high:+.2f})"
        match self.growth:
            case "grows":
                return f"grows by {self.estimate:.2f} MB/h {interval}"
            case "given back":
                return f"grows by {self.estimate:.2f} MB/h {interval}, and is given back at rest"
            case "no growth":
                return f"no growth beyond {MARGIN_MB_PER_HOUR:g} MB/h: {self.estimate:+.2f} {interval}"
            case _:
                return f"undecided: {self.estimate:+.2f} MB/h {interval}"


def blocks_of(looks: Sequence[MemoryLook], seconds: float) -> tuple[GrowthWindow, ...]:
    """Return the medians of the looks under load in the first `seconds`, in at most BLOCKS blocks.

    Blocks without a look are left out.
    """
    under_load = [look for look in looks if not look.at_rest and look.elapsed <= seconds]
    length = seconds / BLOCKS
    parts: dict[int, list[MemoryLook]] = {}
    for look in under_load:
        parts.setdefault(min(int(look.elapsed / length), BLOCKS - 1), []).append(look)
    return tuple(
        GrowthWindow(hours=round((number + 0.5) * length / SECONDS_PER_HOUR, 4), mb=_medians(parts[number]))
        for number in sorted(parts)
    )


def slopes(blocks: Sequence[GrowthWindow], kept: Mapping[MemoryField, float] | None = None) -> tuple[Slope, ...]:
    """Return a slope for each of WATCHED that the kernel has.

    `kept` is by field the MB that the kernel holds more at rest after the soak than before.
    """
    end = blocks[-1].hours if blocks else 0.0
    begin = max(WARM_UP * end, WARM_UP_HOURS)
    judged = [block for block in blocks if block.hours >= begin] if end - begin >= SHORTEST_HOURS else []
    fields = [field for field in WATCHED if any(field in block.mb for block in blocks)]
    points = {field: [(block.hours, block.mb[field]) for block in judged if field in block.mb] for field in fields}
    fitted = (_slope(field, points[field]) for field in fields)
    return tuple(_mark_given_back(slope, end, (kept or {}).get(slope.field)) for slope in fitted)


def _mark_given_back(slope: Slope, hours: float, kept: float | None) -> Slope:
    if slope.growth != "grows" or kept is None or kept >= MARGIN_MB_PER_HOUR * hours:
        return slope
    return slope.model_copy(update={"growth": "given back"})


def megabytes(kb: float) -> float:
    """Return the MB of KiB, with three decimals."""
    return round(kb / KB_PER_MB, 3)


def _medians(looks: Sequence[MemoryLook]) -> dict[MemoryField, float]:
    fields: Iterable[MemoryField] = dict.fromkeys(field for look in looks for field in look.kb)
    return {field: megabytes(median(look.kb[field] for look in looks if field in look.kb)) for field in fields}


def _slope(field: MemoryField, points: Sequence[tuple[float, float]]) -> Slope:
    if len(points) < FEWEST:
        return Slope(field=field, estimate=None, low=None, high=None, growth="not judged")
    from scipy.stats import theilslopes

    hours, mb = zip(*points, strict=True)
    fit = theilslopes(mb, hours, alpha=1 - (1 - COVERAGE) / len(WATCHED))
    estimate = float(fit.slope)
    widening = _widening([size - estimate * at for at, size in points])
    low, high = (estimate + (float(end) - estimate) * widening for end in (fit.low_slope, fit.high_slope))
    growth: Growth = "undecided"
    if high < MARGIN_MB_PER_HOUR:
        growth = "no growth"
    elif low > MARGIN_MB_PER_HOUR:
        growth = "grows"
    return Slope(field=field, estimate=round(estimate, 4), low=round(low, 4), high=round(high, 4), growth=growth)


def _widening(residuals: Sequence[float]) -> float:
    """Return the factor by which the lag-1 autocorrelation of the residuals widens the interval."""
    middle = fmean(residuals)
    deviations = [residual - middle for residual in residuals]
    spread = sum(one * one for one in deviations)
    if spread == 0:
        return 1.0
    autocorrelation = sum(one * other for one, other in pairwise(deviations)) / spread
    autocorrelation = min(max(autocorrelation, 0.0), MOST_ALIKE)
    return math.sqrt((1 + autocorrelation) / (1 - autocorrelation))
