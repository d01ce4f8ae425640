"""The measured throughput at each number of processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from kdyno.base.arrays import Labels
from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.judge.stats import logratio
from kdyno.judge.stats.contrast import contrast_of, log_ratio
from kdyno.judge.stats.estimate import CONFIDENCE, exp
from kdyno.judge.stats.logratio import LogRatio
from kdyno.judge.stats.observations import Observations, ReplicateSample

LARGEST_N = 999_999


class NoSuchCount(UserError):
    message = "throughput at n = {n}: n is a number of processes, a whole number from 1 to {most:,}"
    hint = "give the number of processes or CPUs that each value was measured with"


class NotAscending(UserError):
    message = "n = {n} comes after n = {before}: the numbers of processes must ascend, each at most once"
    hint = "sort the values by n, and put all values of one n together"


class UnusableThroughput(UserError):
    message = "throughput at n = {n}, value {place}: {value} is not a positive number"
    hint = "leave this value out; curves are fitted to logarithms"


class NoThroughput(UserError):
    message = "no throughput at {where}"
    hint = "give at least one value for every n"


@dataclass(frozen=True)
class ProcessLevel:
    """All replicates at one number of processes."""

    n: int
    sample: ReplicateSample
    """Throughputs: work per time, finite and positive. Blocks or layouts show which were measured together."""


class ScalingPoint(Frozen):
    """The measurements at one n."""

    n: int
    replicates: int
    throughput: float
    """The geometric mean."""
    low: float | None
    """Ends of its interval, by t of the logarithms. None for one replicate, or if all agree exactly."""
    high: float | None
    speedup: float | None
    """Throughput over that of n = 1; within blocks if these are known. None if n = 1 wasn't measured."""
    speedup_low: float | None
    speedup_high: float | None
    efficiency: float | None
    """Speed-up over n."""


def require_usable(levels: Sequence[ProcessLevel]) -> None:
    """Raise NoThroughput, NoSuchCount, NotAscending or UnusableThroughput, naming n and value; values count from 1."""
    if not levels:
        raise NoThroughput(where="any n")
    before = 0
    for level in levels:
        if isinstance(level.n, bool) or level.n != level.n // 1 or not 1 <= level.n <= LARGEST_N:
            raise NoSuchCount(n=level.n, most=LARGEST_N)
        if level.n <= before:
            raise NotAscending(n=level.n, before=before)
        values = level.sample.values
        if not len(values):
            raise NoThroughput(where=f"n = {level.n}")
        for place in np.flatnonzero(~((values > 0) & (values < np.inf)))[:1]:
            raise UnusableThroughput(n=level.n, place=place + 1, value=f"{values[place]:g}")
        before = level.n


def ratio_of(level: ProcessLevel, base: ProcessLevel) -> tuple[float, float | None, float | None]:
    """Return throughput over another one's, with the ends of its interval: within blocks if both have them."""
    observed = Observations("", "", "higher", "", {"level": level.sample, "base": base.sample})
    contrast = contrast_of(observed, "level", "base")
    if contrast is None:  # not one block has both
        logs = [np.log(sample.values) for sample in (level.sample, base.sample)]
        return _interval(logratio.log_ratio_of_groups(logs[0], logs[1]))
    return _interval(log_ratio(contrast))


def points_of(levels: Sequence[ProcessLevel]) -> tuple[ScalingPoint, ...]:
    base = levels[0] if levels[0].n == 1 else None
    points = []
    for level in levels:
        throughput, low, high = _interval(logratio.log_ratio_of_differences(np.log(level.sample.values)))
        speedup = None if base is None else (1.0, None, None) if level is base else ratio_of(level, base)
        points.append(
            ScalingPoint(
                n=level.n,
                replicates=len(level.sample.values),
                throughput=throughput,
                low=low,
                high=high,
                speedup=speedup[0] if speedup else None,
                speedup_low=speedup[1] if speedup else None,
                speedup_high=speedup[2] if speedup else None,
                efficiency=speedup[0] / level.n if speedup else None,
            )
        )
    return tuple(points)


def _interval(ratio: LogRatio) -> tuple[float, float | None, float | None]:
    if not ratio.error or ratio.df is None:
        return exp(ratio.mean), None, None
    reach = float(special.stdtrit(ratio.df, (1 + CONFIDENCE) / 2)) * ratio.error
    return exp(ratio.mean), exp(ratio.mean - reach), exp(ratio.mean + reach)


def orders_of_blocks(levels: Sequence[ProcessLevel]) -> list[Labels] | None:
    """Return the indices that sort the values of each n by block; None unless every block has exactly one value of
    every n.
    """
    blocks = [level.sample.blocks for level in levels if level.sample.blocks is not None]
    if len(blocks) < len(levels) or len(levels) < 2 or len(blocks[0]) < 2:
        return None
    first = np.unique(blocks[0])
    alike = all(len(own) == len(first) and np.array_equal(np.sort(own), first) for own in blocks)
    return [np.argsort(own) for own in blocks] if alike else None
