"""The mean of paired log-ratios: its interval, its p-value, and what it could have detected."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from kdyno.frozen import Frozen

CONFIDENCE = 0.95
"""Coverage of every interval that kdyno shows."""

POWER = 0.8
"""How surely an effect must be seen for a run to claim that it could have seen it."""


class Estimate(Frozen):
    """What n blocks say about one ratio. Ratios are raw values, variant over baseline; 1 is no difference."""

    ratio: float
    low: float | None
    """Ends of the 95 % interval; None when one block leaves the spread unknown."""
    high: float | None
    p: float | None
    """Of the hypothesis that the ratio is 1; 0 when all blocks agree exactly on another one."""
    detectable: float | None
    """Smallest effect, as a fraction, that a run of this size and spread sees with 80 % power."""
    blocks: int
    """Complete blocks: boots of both variants."""


def estimate(log_ratios: ArrayLike, alpha: float) -> Estimate:
    """Estimate the ratio behind the log-ratios of complete blocks, shape (n,), n >= 1, all finite.

    mean ± t(n-1) · sd / √n, back on the scale of ratios; p from the paired t-test, which is the same thing.
    Smallest detectable effect: exp((t(1 - alpha/2, n-1) + t(power, n-1)) · sd / √n) - 1.
    """
    logs = np.asarray(log_ratios, dtype=float)
    n = len(logs)
    if n == 1:
        return Estimate(ratio=math.exp(logs[0]), low=None, high=None, p=None, detectable=None, blocks=1)
    if np.ptp(logs) == 0:  # exact counts: every seed gave the same answer. numpy's mean of equals may differ from them
        ratio = math.exp(logs[0])
        return Estimate(ratio=ratio, low=ratio, high=ratio, p=float(ratio == 1), detectable=0.0, blocks=n)
    mean, error, df = float(np.mean(logs)), float(np.std(logs, ddof=1)) / math.sqrt(n), n - 1
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, df)) * error
    seen = float(stats.t.ppf(1 - alpha / 2, df) + stats.t.ppf(POWER, df)) * error
    return Estimate(
        ratio=math.exp(mean),
        low=_exp(mean - half),
        high=_exp(mean + half),
        p=float(2 * stats.t.sf(abs(mean) / error, df)),
        detectable=_exp(seen) - 1,
        blocks=n,
    )


def _exp(x: float) -> float:
    """e to the x, kept finite: two blocks that disagree wildly know next to nothing, and JSON has no infinity."""
    return math.exp(min(x, 700.0))
