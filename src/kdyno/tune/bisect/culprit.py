"""The culprits of a bisection: the effect of a step with its interval, and whether its check confirms it. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy import special

from kdyno.tune.bisect.evidence import Differences

CONFIDENCE = 0.95

Checked = Literal["confirmed", "contradicted", "undecided"]


@dataclass(frozen=True)
class Interval:
    """An effect as a fraction, with its 95 % interval."""

    effect: float
    low: float
    high: float


@dataclass(frozen=True)
class Culprit:
    """A step, or several that no testable state divides, that made the benchmark worse."""

    before: int
    after: int
    steps: tuple[int, ...]
    probability: float
    """The probability of these steps before the check."""
    size: Interval | None = None
    """The effect of the check; None without one."""
    checked: Checked = "undecided"
    share: float | None = None
    """The part of the range's effect that it explains; None without a check."""


def interval_of(differences: Differences) -> Interval:
    """Return the effect of differences with its interval; without a spread the interval is everything."""
    ratio = differences.log_ratio()
    if ratio.error is None or ratio.df is None:
        return Interval(math.expm1(ratio.mean), -1.0, math.inf)
    reach = float(special.stdtrit(ratio.df, (1 + CONFIDENCE) / 2)) * ratio.error
    return Interval(math.expm1(ratio.mean), math.expm1(ratio.mean - reach), math.expm1(ratio.mean + reach))
