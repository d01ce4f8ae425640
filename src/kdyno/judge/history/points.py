"""Any two kernels of an axis beside each other: the ratio of their points in each benchmark. Pure."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator

from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.base.text import clean
from kdyno.judge.history.model import HistoryAxis, HistoryKernel, HistoryPoint

LONGEST_NAME = 200
"""Characters of a name that are looked at: it is compared with those of all kernels."""


class KernelUnknown(UserError):
    message = "{count} on this axis has the name or the commit {name}"
    hint = "the nearest name is {nearest}"


class PointRatio(Frozen):
    """A benchmark by one recipe at two kernels."""

    benchmark: str
    recipe: str
    unit: str
    before: float
    after: float
    ratio: float
    """The value after over that before."""
    low: float | None
    """The ends of the ratio's 95 % interval; None where samples repeat, and if a point is of one boot. The half width
    of its logarithm is the root of the sum of the squares of those of both points."""
    high: float | None
    is_worse: bool
    is_beyond: bool
    """The interval is outside of the axis's margin; without one the ratio is."""
    run_before: str
    run_after: str


def kernel_named(axis: HistoryAxis, name: str) -> int:
    """Return the place of the kernel with this name or commit, or beginning of a commit. Raise KernelUnknown."""
    name = name.strip()[:LONGEST_NAME]
    exact = [place for place, kernel in enumerate(axis.kernels) if name in (kernel.name, kernel.identity)]
    places = exact or [
        place
        for place, kernel in enumerate(axis.kernels)
        if name and kernel.commit and kernel.commit.startswith(name.lower())
    ]
    if len(places) != 1:
        names = [kernel.name for kernel in axis.kernels]
        [nearest] = difflib.get_close_matches(name, names, n=1, cutoff=0)
        count = "no kernel" if not places else f"not one kernel but {len(places)}"
        raise KernelUnknown(name=clean(name), count=count, nearest=nearest)
    return places[0]


def point_ratios(axis: HistoryAxis, before: int, after: int) -> list[PointRatio]:
    """Return the benchmarks and recipes that both kernels have, the largest difference first."""
    return sorted(_ratios(axis, before, after), key=lambda row: -abs(math.log(row.ratio)))


def _ratios(axis: HistoryAxis, before: int, after: int) -> Iterator[PointRatio]:
    for benchmark in axis.benchmarks:
        for line in benchmark.lines:
            points = {point.kernel: point for point in line.points}
            if before not in points or after not in points:
                continue
            one, two = points[before], points[after]
            ratio, half = two.value / one.value, None if axis.is_exact else _half_width(one, two)
            low, high = (None, None) if half is None else (ratio * math.exp(-half), ratio * math.exp(half))
            edge = 1 + axis.margin
            yield PointRatio(
                benchmark=benchmark.name,
                recipe=line.recipe,
                unit=benchmark.unit,
                before=one.value,
                after=two.value,
                ratio=ratio,
                low=low,
                high=high,
                is_worse=(ratio > 1) == (benchmark.direction == "lower"),
                is_beyond=(low or ratio) > edge or (high or ratio) < 1 / edge,
                run_before=one.run,
                run_after=two.run,
            )


def _half_width(one: HistoryPoint, two: HistoryPoint) -> float | None:
    """Return half of the interval of the logarithm of the ratio."""
    if one.low is None or two.low is None:
        return None
    return math.hypot(math.log(one.value / one.low), math.log(two.value / two.low))


def names_of(kernels: tuple[HistoryKernel, ...], most: int) -> list[str]:
    """Return the names of the newest kernels, the newest first."""
    return [kernel.name for kernel in kernels[: -most - 1 : -1]]
