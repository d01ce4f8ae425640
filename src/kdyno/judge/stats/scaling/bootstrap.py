"""Cases drawn with replacement: the basis of the intervals of a fitted law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from kdyno.base.arrays import Labels
from kdyno.judge.stats.estimate import CONFIDENCE
from kdyno.judge.stats.scaling.levels import ProcessLevel

DRAWS = 2000
SEED = 19670418
FEWEST = 5
"""Fewer blocks, or degrees of freedom, are drawn all alike too often to have a 97.5 % point."""

Array = NDArray[np.float64]
Drawn = Literal["blocks", "layouts", "replicates"]


@dataclass(frozen=True)
class Resampled:
    """Bootstrap draws: means of ln X and the number of their values, both of shape (draws, k)."""

    logs: Array
    counts: Array
    tail: float
    """The share of draws below the lower end of an interval, and above the upper one."""


def drawn_cases(levels: Sequence[ProcessLevel]) -> tuple[Drawn, list[Labels] | None]:
    """Return the unit that the bootstrap draws, and the label of each value; None if values don't belong together."""
    layouts = [level.sample.clusters for level in levels if level.sample.clusters is not None]
    if len(layouts) == len(levels) and len(np.unique(np.concatenate(layouts))) > 1:
        return "layouts", layouts
    blocks = [level.sample.blocks for level in levels if level.sample.blocks is not None]
    if len(blocks) == len(levels) and sum(map(len, blocks)) > len(np.unique(np.concatenate(blocks))):
        return "blocks", blocks
    return "replicates", None


def no_interval_reason(levels: Sequence[ProcessLevel], labels: list[Labels] | None, drawn: str) -> str:
    """Return why there can be no bootstrap; empty if there can."""
    if all(np.ptp(level.sample.values) == 0 for level in levels) and any(
        len(level.sample.values) > 1 for level in levels
    ):
        return "all replicates agree exactly"
    if labels is not None:
        units = len(np.unique(np.concatenate(labels)))
        return f"{units} {drawn} are too few for a bootstrap: it needs {FEWEST}" if units < FEWEST else ""
    lone = [str(level.n) for level in levels if len(level.sample.values) < 2]
    if lone:
        return f"only one value at n = {', '.join(lone)}: its spread is unknown"
    spare = sum(len(level.sample.values) - 1 for level in levels)
    if spare < FEWEST:
        return f"{spare + len(levels)} values at {len(levels)} n are too few for a bootstrap"
    return ""


def resample(
    levels: Sequence[ProcessLevel], labels: list[Labels] | None, draws: int, random: np.random.Generator
) -> Resampled:
    """Draw cases with replacement.

    The percentiles are those of the expanded percentile interval (Hesterberg, 2015): the plain one is too narrow by
    sqrt((r - 1) / r) for r cases, and takes normal quantiles for those of t.
    """
    logs = [np.log(level.sample.values) for level in levels]
    values, k = sum(map(len, logs)), len(levels)
    if labels is None:
        means = np.empty((draws, k))
        for place, own in enumerate(logs):
            means[:, place] = own[random.integers(0, len(own), (draws, len(own)))].mean(axis=1)
        counts = np.tile([float(len(own)) for own in logs], (draws, 1))
        return Resampled(means, counts, _tail(math.sqrt(values / (values - k)), values - k))
    units = np.unique(np.concatenate(labels))
    sums, sizes = np.zeros((len(units), k)), np.zeros((len(units), k))
    for place, (own, own_labels) in enumerate(zip(logs, labels, strict=True)):
        np.add.at(sums[:, place], np.searchsorted(units, own_labels), own)
        np.add.at(sizes[:, place], np.searchsorted(units, own_labels), 1)
    times = random.multinomial(len(units), np.full(len(units), 1 / len(units)), draws).astype(np.float64)
    counts = times @ sizes
    means = np.divide(times @ sums, counts, out=np.zeros_like(counts), where=counts > 0)
    return Resampled(means, counts, _tail(math.sqrt(len(units) / (len(units) - 1)), len(units) - 1))


def _tail(factor: float, df: int) -> float:
    """Return the share of draws beyond an end: that of the normal distribution beyond factor · t."""
    return float(special.ndtr(-factor * special.stdtrit(df, (1 + CONFIDENCE) / 2)))
