"""Groups on the scale of a table: what analysis of variance and comparisons of pairs are computed from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdyno.judge.blocks import Blocked
from kdyno.judge.observations import Observations, Sample, Summary, Values
from kdyno.judge.tables import GroupSummary, Scale

ALIKE = 2.0
"""Spreads of which the largest is less than this many times the smallest are taken to be alike."""


@dataclass(frozen=True)
class Group:
    """Moments of one variant on the scale of the table."""

    variant: str
    n: int
    mean: float
    variance: float
    """With n - 1 in the denominator; 0 where all values agree, or there is one only."""


def groups_of(observed: Observations) -> list[Group]:
    """Moments by variant: of logarithms, or as published."""
    found = []
    for variant, each in observed.groups.items():
        if isinstance(each, Summary):
            found.append(Group(variant, each.n, each.mean, each.sd**2 if each.n > 1 else 0.0))
        elif len(each.values):
            found.append(_group(variant, np.log(each.values)))
    return found


def summaries_of(observed: Observations) -> tuple[GroupSummary, ...]:
    """What a reader wants to see first, in the benchmark's unit."""
    return tuple(
        GroupSummary(variant=variant, n=each.n, mean=each.mean, sd=each.sd if each.n > 1 else None, median=None)
        if isinstance(each, Summary)
        else _summary(variant, each)
        for variant, each in observed.groups.items()
        if isinstance(each, Summary) or len(each.values)
    )


def scale_of(observed: Observations) -> Scale:
    """Raw where only summaries are known, otherwise logarithms."""
    return "raw" if any(isinstance(each, Summary) for each in observed.groups.values()) else "log"


@dataclass(frozen=True)
class Noise:
    """The variance of one value that its variant (and block) doesn't explain."""

    variance: float
    df: int


def pooled(groups: Sequence[Group]) -> Noise | None:
    """The noise within groups; None where there is none to be seen."""
    df = sum(group.n - 1 for group in groups)
    variance = sum((group.n - 1) * group.variance for group in groups) / max(df, 1)
    return Noise(variance, df) if variance > 0 else None


def groups_in(found: Blocked) -> list[Group]:
    """Moments by variant of values in blocks."""
    return [_group(name, found.logs[found.variants == index]) for index, name in enumerate(found.names)]


def sd_ratio(groups: Sequence[Group]) -> float | None:
    """Largest sd over the smallest; None where one is unknown or 0."""
    variances = [group.variance for group in groups]
    known = groups and min(variances) > 0 and min(group.n for group in groups) > 1
    return math.sqrt(max(variances) / min(variances)) if known else None


def ratio_of(first: Group, second: Group, scale: Scale) -> float:
    """first / second in the benchmark's unit."""
    if scale == "raw":
        return first.mean / second.mean
    return math.exp(max(-700.0, min(first.mean - second.mean, 700.0)))


def _group(variant: str, logs: Values) -> Group:
    if len(logs) == 1 or np.ptp(logs) == 0:
        return Group(variant, len(logs), float(logs[0]), 0.0)
    return Group(variant, len(logs), float(np.mean(logs)), float(np.var(logs, ddof=1)))


def _summary(variant: str, sample: Sample) -> GroupSummary:
    with np.errstate(over="ignore"):
        sd = float(np.std(sample.values, ddof=1)) if len(sample.values) > 1 else None
    return GroupSummary(
        variant=variant,
        n=len(sample.values),
        mean=float(np.mean(sample.values)),
        sd=sd if sd is None or math.isfinite(sd) else None,
        median=float(np.median(sample.values)),
    )
