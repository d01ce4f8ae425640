"""Whether a kernel's own memory grows while it works: a robust slope, with an interval for what is not seen. Pure.

Loads come and go, so that single looks jump. A soak is cut into blocks of equal time, and the median of each counts.
The slope is Theil and Sen's: the median of the slopes of all pairs of blocks, which a few wild ones don't move. Its
interval takes blocks for independent; where a round of a load is longer than a block they are not, and it is as much
wider as their number is smaller that would be worth as much: n (1 - r) / (1 + r), where r is the autocorrelation.

What grows with the work of programs goes with them. A leak is what is still there at rest.
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
"""What only the kernel can give back."""
BLOCKS = 40
WARM_UP = 0.25
"""Of the time: caches fill, servers grow to their size. What it shows is kept, and not judged."""
WARM_UP_HOURS = 1 / 6
"""At least."""
SHORTEST_HOURS = 1 / 3
"""After the warm-up: less tells a leak from loads that come and go no better than by chance."""
FEWEST = 8
"""Blocks that a slope is made of."""
COVERAGE = 0.95
"""Of the intervals of all WATCHED together; each has more (Bonferroni)."""
MOST_ALIKE = 0.95
"""Of an autocorrelation: nearer to 1 nothing could be told at all."""
MARGIN_MB_PER_HOUR = 1.0
"""Less growth than this is none: 24 MB a day."""
KB_PER_MB = 1024
SECONDS_PER_HOUR = 3600

Growth = Literal["grows", "given back", "no growth", "undecided", "not judged"]


class GrowthWindow(Frozen):
    """Medians over a part of a soak, in MB; of fields that the kernel has."""

    hours: float
    """From the beginning of the soak to the middle of the block."""
    mb: dict[MemoryField, float]


class Slope(Frozen):
    """How one field changes after the warm-up, in MB per hour."""

    field: MemoryField
    estimate: float | None
    low: float | None
    high: float | None
    """Ends of an interval whose coverage is that of all fields together."""
    growth: Growth

    def in_words(self) -> str:
        """`grows by 3.1 MB/h (2.2 to 4.0)`."""
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
    """The looks under load of the first `seconds`, in at most BLOCKS blocks; those without a look are left out."""
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
    """One for each of WATCHED that the kernel has; `kept` is how many MB more it holds at rest than before the soak."""
    end = blocks[-1].hours if blocks else 0.0
    begin = max(WARM_UP * end, WARM_UP_HOURS)
    judged = [block for block in blocks if block.hours >= begin] if end - begin >= SHORTEST_HOURS else []
    fields = [field for field in WATCHED if any(field in block.mb for block in blocks)]
    points = {field: [(block.hours, block.mb[field]) for block in judged if field in block.mb] for field in fields}
    fitted = (_slope(field, points[field]) for field in fields)
    return tuple(_without_what_was_given_back(slope, end, (kept or {}).get(slope.field)) for slope in fitted)


def _without_what_was_given_back(slope: Slope, hours: float, kept: float | None) -> Slope:
    if slope.growth != "grows" or kept is None or kept >= MARGIN_MB_PER_HOUR * hours:
        return slope
    return slope.model_copy(update={"growth": "given back"})


def megabytes(kb: float) -> float:
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
    wider = _widening([size - estimate * at for at, size in points])
    low, high = (estimate + (float(end) - estimate) * wider for end in (fit.low_slope, fit.high_slope))
    growth: Growth = "undecided"
    if high < MARGIN_MB_PER_HOUR:
        growth = "no growth"
    elif low > MARGIN_MB_PER_HOUR:
        growth = "grows"
    return Slope(field=field, estimate=round(estimate, 4), low=round(low, 4), high=round(high, 4), growth=growth)


def _widening(residuals: Sequence[float]) -> float:
    """How much wider an interval is for what each block says of the next: by lag-1 autocorrelation."""
    middle = fmean(residuals)
    about = [residual - middle for residual in residuals]
    spread = sum(one * one for one in about)
    if spread == 0:
        return 1.0
    alike = sum(one * other for one, other in pairwise(about)) / spread
    alike = min(max(alike, 0.0), MOST_ALIKE)
    return math.sqrt((1 + alike) / (1 - alike))
