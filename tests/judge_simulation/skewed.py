"""Noise that is skewed in one variant and not in the other: what intervals cover then, and how often it is noticed.

All draws are seeded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy

from kdyno.base.arrays import Values
from kdyno.judge.stats import skewness
from kdyno.judge.stats.estimate import CONFIDENCE

Shape = Literal["normal", "lognormal 0.5", "lognormal 1", "heavy-tailed"]
SHAPES: tuple[tuple[Shape, Shape], ...] = (
    ("normal", "normal"),
    ("lognormal 0.5", "normal"),
    ("lognormal 1", "normal"),
    ("lognormal 1", "lognormal 1"),
    ("heavy-tailed", "heavy-tailed"),
)
"""Of the noise of the variant, and of the baseline."""
assert {shape for pair in SHAPES for shape in pair} == set(get_args(Shape))

NOISE = 0.005
"""Standard deviation of normal noise."""
TAIL = 0.02
"""Median of what lognormal noise adds to a value of 1."""


@dataclass(frozen=True)
class Rates:
    """Of runs without an effect; shares."""

    covered: float
    """95 % intervals that hold the truth."""
    warned: float
    """Runs that are called skewed."""
    covered_if_warned: float | None
    covered_if_not: float | None


def skewed(shapes: tuple[Shape, Shape], n: int, draws: int, warnings: int, seed: int) -> tuple[Rates, Rates]:
    """Return the rates of paired runs, and of unpaired ones after Welch, of n values each; `warnings` of the `draws`
    runs are looked at for skew."""
    random = np.random.default_rng(seed)
    variant, baseline = (_logs(shape, random, (draws, n)) for shape in shapes)
    differences = variant - baseline
    t = np.abs(differences.mean(axis=1)) / (differences.std(axis=1, ddof=1) / n**0.5)
    paired = t <= scipy.stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)
    errors = [logs.var(axis=1, ddof=1) / n for logs in (variant, baseline)]
    both = errors[0] + errors[1]
    df = both**2 * (n - 1) / (errors[0] ** 2 + errors[1] ** 2)
    t = np.abs(variant.mean(axis=1) - baseline.mean(axis=1)) / np.sqrt(both)
    welch = t <= scipy.stats.t.ppf((1 + CONFIDENCE) / 2, df)
    noticed = [skewness.difference_skew(run) is not None for run in differences[:warnings]]
    noticed_apart = [
        skewness.group_skew(ours, theirs) is not None
        for ours, theirs in zip(variant[:warnings], baseline[:warnings], strict=True)
    ]
    return _rates(paired, np.array(noticed)), _rates(welch, np.array(noticed_apart))


def _rates(
    held: np.ndarray[tuple[int], np.dtype[np.bool_]], noticed: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Rates:
    looked_at = held[: len(noticed)]
    return Rates(
        covered=float(held.mean()),
        warned=float(noticed.mean()),
        covered_if_warned=float(looked_at[noticed].mean()) if noticed.any() else None,
        covered_if_not=float(looked_at[~noticed].mean()) if not noticed.all() else None,
    )


def _logs(shape: Shape, random: np.random.Generator, size: tuple[int, int]) -> Values:
    """Logarithms of values, around their true mean."""
    if shape == "normal":
        return random.normal(0, NOISE, size)
    if shape == "heavy-tailed":
        return 0.01 * random.standard_t(3, size)
    sigma = float(shape.split()[1])
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    truth = weights @ np.log1p(TAIL * np.exp(sigma * nodes)) / weights.sum()
    logs: Values = np.log1p(TAIL * random.lognormal(0, sigma, size)) - truth
    return logs
