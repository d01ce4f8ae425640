"""The noise of costs that link order and seed cause. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from kdyno.tune.delegation.trial import Values

SURE = 0.95
"""The one-sided confidence that a difference is not chance."""
ROUNDING = 1e-9
"""The error of sums of costs by floating-point arithmetic."""


def spread(trials: Sequence[Values]) -> tuple[float, int]:
    """Return the standard deviation of a replicate within its trial, and its degrees of freedom.

    It is the residual of a two-way layout, trials by replicates, without the effects of a link order or a seed on all
    kernels alike. More trials make it more certain. With one trial it is not known, and the degrees of freedom are 0.
    """
    costs = np.array(trials, np.float64)
    freedom = (costs.shape[0] - 1) * (costs.shape[1] - 1) if costs.ndim == 2 else 0
    if not freedom:
        return math.inf, 0
    residual = costs - costs.mean(axis=0) - costs.mean(axis=1, keepdims=True) + costs.mean()
    return math.sqrt(float(np.sum(residual**2)) / freedom), freedom


def error(trials: Sequence[Values]) -> float:
    """Return the standard error of the difference of two trials' means."""
    deviation, freedom = spread(trials)
    return deviation * math.sqrt(2 / len(trials[0])) if freedom else math.inf


def noise(trials: Sequence[Values]) -> float:
    """Return the difference of two trials' means that chance alone exceeds in one of twenty cases, in one direction."""
    freedom = spread(trials)[1]
    return quantile(freedom) * error(trials) + ROUNDING if freedom else math.inf


@lru_cache
def quantile(freedom: int) -> float:
    """Return the quantile SURE of Student's t distribution."""
    from scipy.stats import t

    return float(t.ppf(SURE, freedom))
