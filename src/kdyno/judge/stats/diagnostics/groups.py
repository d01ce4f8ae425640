"""Groups on the scale of a table: the input of analysis of variance and comparisons of pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdyno.base.arrays import Values
from kdyno.judge.stats.diagnostics.blocks import Blocked
from kdyno.judge.stats.diagnostics.tables import GroupSummary, Scale
from kdyno.judge.stats.observations import Observations, ReplicateSample, Summary

ALIKE = 2.0
"""Spreads are taken to be alike if the largest is less than this many times the smallest."""


@dataclass(frozen=True)
class GroupMoments:
    """Moments of one variant on the scale of the table."""

    variant: str
    n: int
    mean: float
    variance: float
    """With n - 1 in the denominator; 0 if all values agree, or there is only one."""


def groups_of(observed: Observations) -> list[GroupMoments]:
    """Return moments by variant: of logarithms, or as published."""
    groups = []
    for variant, measured in observed.groups.items():
        if isinstance(measured, Summary):
            groups.append(GroupMoments(variant, measured.n, measured.mean, measured.sd**2 if measured.n > 1 else 0.0))
        elif len(measured.values):
            groups.append(_group(variant, np.log(measured.values)))
    return groups


def summaries_of(observed: Observations) -> tuple[GroupSummary, ...]:
    """Return the summaries that a reader wants to see first, in the benchmark's unit."""
    return tuple(
        GroupSummary(
            variant=variant, n=measured.n, mean=measured.mean, sd=measured.sd if measured.n > 1 else None, median=None
        )
        if isinstance(measured, Summary)
        else _summary(variant, measured)
        for variant, measured in observed.groups.items()
        if isinstance(measured, Summary) or len(measured.values)
    )


def scale_of(observed: Observations) -> Scale:
    """Return raw if only summaries are known, otherwise logarithms."""
    return "raw" if any(isinstance(measured, Summary) for measured in observed.groups.values()) else "log"


@dataclass(frozen=True)
class Noise:
    """The variance of one value that its variant (and block) doesn't explain."""

    variance: float
    df: int


def pool_noise(groups: Sequence[GroupMoments]) -> Noise | None:
    """Return the noise within groups; None if there is none."""
    df = sum(group.n - 1 for group in groups)
    variance = sum((group.n - 1) * group.variance for group in groups) / max(df, 1)
    return Noise(variance, df) if variance > 0 else None


def groups_in(table: Blocked) -> list[GroupMoments]:
    """Return moments by variant of values in blocks."""
    return [_group(name, table.logs[table.variants == index]) for index, name in enumerate(table.names)]


def sd_ratio(groups: Sequence[GroupMoments]) -> float | None:
    """Return the largest sd over the smallest; None if one is unknown or 0."""
    variances = [group.variance for group in groups]
    comparable = groups and min(variances) > 0 and min(group.n for group in groups) > 1
    return math.sqrt(max(variances) / min(variances)) if comparable else None


def ratio_of(first: GroupMoments, second: GroupMoments, scale: Scale) -> float:
    """Return first / second in the benchmark's unit."""
    if scale == "raw":
        return first.mean / second.mean
    return math.exp(max(-700.0, min(first.mean - second.mean, 700.0)))


def _group(variant: str, logs: Values) -> GroupMoments:
    if len(logs) == 1 or np.ptp(logs) == 0:
        return GroupMoments(variant, len(logs), float(logs[0]), 0.0)
    return GroupMoments(variant, len(logs), float(np.mean(logs)), float(np.var(logs, ddof=1)))


def _summary(variant: str, sample: ReplicateSample) -> GroupSummary:
    with np.errstate(over="ignore"):
        sd = float(np.std(sample.values, ddof=1)) if len(sample.values) > 1 else None
    return GroupSummary(
        variant=variant,
        n=len(sample.values),
        mean=float(np.mean(sample.values)),
        sd=sd if sd is None or math.isfinite(sd) else None,
        median=float(np.median(sample.values)),
    )
