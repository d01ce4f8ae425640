"""Intervals, layouts and planned looks against known truths. All draws are seeded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy

from kdyno.base.arrays import Values
from kdyno.judge.stats import bootstrap, logratio
from kdyno.judge.stats.estimate import CONFIDENCE
from kdyno.judge.stats.sequential import nominal_levels

Noise = Literal["normal", "skewed", "heavy-tailed", "boot-clustered"]
NOISES: tuple[Noise, ...] = get_args(Noise)

WEATHER = 0.03
"""What a block does to all its boots: sd of the logarithm."""


@dataclass(frozen=True)
class Coverage:
    """How often 95 % intervals held the truth; shares."""

    t: float
    studentized: float
    """The bootstrap that kdyno shows."""
    percentile: float
    """The bootstrap that it doesn't."""


def log_ratios(noise: Noise, draws: int, blocks: int, seed: int) -> Values:
    """Paired log-ratios of runs without an effect, shape (draws, blocks), from values of both variants."""
    random = np.random.default_rng(seed)
    weather = random.normal(0, WEATHER, (draws, blocks))
    variant, baseline = (weather + _logs(noise, random, (draws, blocks)) for _ in range(2))
    differences: Values = variant - baseline
    return differences


def coverage(noise: Noise, blocks: int, draws: int, seed: int, bootstraps: int) -> Coverage:
    """Measure coverage over `draws` runs, and over the first `bootstraps` of them that of the bootstraps."""
    runs = log_ratios(noise, draws, blocks, seed)
    reach = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, blocks - 1))
    held = []
    for run in runs:
        ratio = logratio.log_ratio_of_differences(run)
        assert ratio.error is not None
        held.append(abs(ratio.mean) <= reach * ratio.error)
    ends = [bootstrap.difference_interval(run, None, CONFIDENCE) for run in runs[:bootstraps]]
    return Coverage(
        t=float(np.mean(held)),
        studentized=float(np.mean([interval is not None and interval[0] <= 0 <= interval[1] for interval in ends])),
        percentile=float(np.mean([_percentile_holds(run, seed) for run in runs[:bootstraps]])),
    )


def layout_false_positives(layouts: int, boots: int, spread: float, draws: int, seed: int) -> tuple[float, float]:
    """Return how often p < 0.05 where two variants differ in link order only: judged by layouts, and by boots.

    `spread` is the sd between layouts in units of the sd between boots; each layout has `boots` blocks.
    """
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(layouts), boots)
    by_layouts = by_boots = 0
    for _ in range(draws):
        run = random.normal(0, spread, layouts)[labels] + random.normal(0, 1, len(labels))
        by_layouts += _p(logratio.log_ratio_of_layouts(run, labels)) < 0.05
        by_boots += _p(logratio.log_ratio_of_differences(run)) < 0.05
    return by_layouts / draws, by_boots / draws


def family_errors(looks: int, blocks: int, benchmarks: int, draws: int, seed: int, *, peek: bool = False) -> float:
    """Return the share of runs without effects in which some benchmark got a verdict at some look.

    Looks are equally spaced over `blocks`, each at its level, adjusted after Holm; with `peek` each is at 0.05.
    """
    random = np.random.default_rng(seed)
    levels = (0.05,) * looks if peek else nominal_levels(0.05, looks)
    wrong = np.zeros(draws, dtype=bool)
    # in portions, so that they fit into memory
    for part in np.array_split(np.arange(draws), max(1, draws * blocks * benchmarks // 5_000_000)):
        runs = random.normal(0, 1, (len(part), benchmarks, blocks))
        for look, level in enumerate(levels, 1):
            observed = runs[:, :, : round(blocks * look / looks)]
            n = observed.shape[2]
            t = np.abs(observed.mean(axis=2)) / (observed.std(axis=2, ddof=1) / n**0.5)
            # Holm rejects something exactly if it rejects the smallest p
            wrong[part] |= benchmarks * 2 * scipy.stats.t.sf(t.max(axis=1), n - 1) < level
    return float(wrong.mean())


def _logs(noise: Noise, random: np.random.Generator, shape: tuple[int, int]) -> Values:
    """Logarithms of the values of boots."""
    if noise == "normal":
        return random.normal(0, 0.01, shape)
    if noise == "skewed":
        skewed: Values = np.log1p(0.02 * random.lognormal(0, 0.5, shape))
        return skewed
    if noise == "heavy-tailed":
        return 0.01 * random.standard_t(3, shape)
    readings = random.normal(0, 0.01, shape)[:, :, None] + random.normal(0, 0.02, (*shape, 5))
    ticks = np.where(random.random((*shape, 5)) < 0.1, 0.1, 0.0)
    medians: Values = np.median(readings + ticks, axis=2)
    return medians


def _p(ratio: logratio.LogRatio) -> float:
    assert ratio.error is not None
    assert ratio.df is not None
    return 2 * float(scipy.stats.t.sf(abs(ratio.mean) / ratio.error, ratio.df))


def _percentile_holds(run: Values, seed: int) -> bool:
    random = np.random.default_rng(seed)
    means = run[random.integers(0, len(run), (bootstrap.DRAWS, len(run)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return bool(low <= 0 <= high)
