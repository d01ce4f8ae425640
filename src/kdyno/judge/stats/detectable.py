"""The effects that a run could have seen: the one that the rule, with its correction and its margin, finds in 80 % of
runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from kdyno.base.arrays import Values
from kdyno.judge.stats.estimate import POWER, EstimateLimits, exp

QUANTILES = 32
"""Quantiles of the distribution of a spread, over which chances are averaged."""
STEPS = 60
"""The most steps to a detectable effect. Newton's method takes six; where it would leave the interval, it is halved."""
PRECISION = 1e-9
"""The last step of Newton's method, as a share of the effect."""


def detectable(
    error: float, df: float, limits: EstimateLimits, *, family: int = 1, rounding: float = 0.0, aim: float = POWER
) -> float:
    """Return the smallest effect, a fraction, that is called different with probability `aim`."""
    rule = _rule(error, df, limits, family, rounding)
    low, high = 0.0, float((rule.needed / rule.ours).max()) + 10 / float(rule.ours.min())
    effect = float(rule.needed.mean())
    for _ in range(STEPS):
        missing = aim - rule.chance(effect)
        low, high = (effect, high) if missing > 0 else (low, effect)
        growth = rule.growth(effect)
        step = missing / growth if growth > 0 else math.inf
        nearer = effect + step if low < effect + step < high else (low + high) / 2
        if abs(nearer - effect) <= PRECISION * nearer:
            return exp(nearer * error) - 1
        effect = nearer
    return exp(high * error) - 1


def chances(
    effects: Sequence[float], error: float, df: float, limits: EstimateLimits, *, family: int = 1
) -> list[float]:
    """Return the probability with which effects, fractions, are called different."""
    rule = _rule(error, df, limits, family, 0.0)
    return [rule.chance(math.log1p(effect) / error) for effect in effects]


@dataclass(frozen=True)
class _Rule:
    """The conditions for a verdict of difference, averaged over the unknown facts about a run.

    That is two spreads (chi-square), both in true ones: the possible spread of this run, which is all that is known of
    the true one, and that of a run like it. An error taken for the true one promised 80 % and kept 72 %, with 34
    comparisons in 12 blocks (tools/simulate).
    """

    ours: Values
    """The spreads of this run, shape (QUANTILES, 1)."""
    needed: Values
    """The mean that a run like it needs, in true standard errors, shape (QUANTILES, QUANTILES)."""

    def chance(self, effect: float) -> float:
        """Return the probability of detecting an effect of so many standard errors of this run."""
        return float(special.ndtr(effect * self.ours - self.needed).mean())

    def growth(self, effect: float) -> float:
        """Return the derivative of `chance`."""
        density = np.exp(-((effect * self.ours - self.needed) ** 2) / 2) / math.sqrt(2 * math.pi)
        return float((density * self.ours).mean())


def _rule(error: float, df: float, limits: EstimateLimits, family: int, rounding: float) -> _Rule:
    """Return the rule; `error` is the standard error of the log-ratio, estimated with `df` degrees of freedom. A
    verdict of difference needs a p that is below alpha after adjustment and an interval that is not within the margin.
    The p is adjusted as for the only effect among `family` comparisons: both Holm and Benjamini-Hochberg then ask for p
    < alpha / family.
    """
    spreads: Values = np.sqrt(special.chdtri(df, (np.arange(QUANTILES) + 0.5) / QUANTILES) / df)
    ours, theirs = spreads[:, None], spreads[None, :]
    significant = -float(special.stdtrit(df, limits.alpha / family / 2)) * theirs + rounding / error * ours
    reach = float(special.stdtrit(df, (1 + limits.confidence) / 2)) * theirs
    outside_margin = (math.log1p(limits.margin) - rounding) / error * ours - reach
    return _Rule(ours, np.maximum(significant, outside_margin))
