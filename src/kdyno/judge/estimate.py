"""What the replicates say about one ratio: its interval, its p-values, and what they could have detected."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy import special

from kdyno.frozen import Frozen
from kdyno.judge.logratio import LogRatio

CONFIDENCE = 0.95
"""Coverage of the intervals that kdyno shows, unless a run may stop early."""

POWER = 0.8
"""How surely an effect must be seen for a run to claim that it could have seen it."""

Method = Literal["paired", "welch", "layouts"]
"""paired: differences within blocks; layouts: the same, averaged within each layout; welch: independent groups."""

LARGEST = 700.0
"""Of a logarithm: e to more than that is not a number that JSON has."""


@dataclass(frozen=True)
class Limits:
    """What is asked of an estimate; all are fractions."""

    margin: float
    alpha: float = 0.05
    confidence: float = CONFIDENCE


class Estimate(Frozen):
    """What is known about one ratio. Ratios are raw values, variant over baseline; 1 is no difference."""

    ratio: float
    low: float | None
    """Ends of the interval; None when a single replicate leaves the spread unknown."""
    high: float | None
    confidence: float
    """Coverage of the interval, and of the bootstrap's: 0.95 unless the run may stop early."""
    bootstrap_low: float | None = None
    """The same ends by the studentized bootstrap. None where everything agrees exactly, for summaries, at a confidence
    above 0.99, with fewer than five replicates, and with more than a thousand: it then says what the interval says."""
    bootstrap_high: float | None = None
    detectable: float | None
    """Smallest effect, as a fraction, that a run of this size and spread sees with 80 % power."""
    method: Method
    blocks: int
    """Complete blocks: boots of both variants; 0 where values are not paired."""
    units: int
    """Replicates that the interval rests on: blocks, layouts, or values (of the smaller group)."""
    df: float | None
    """Degrees of freedom of the interval."""
    p_equivalence: float | None
    """Of the hypothesis that the ratio is not within 1 ± margin: two one-sided t-tests (Schuirmann 1987)."""
    p: float | None
    """Of the hypothesis that the ratio is 1; 0 when all replicates agree exactly on another one."""


def estimate_ratio(
    log_ratio: LogRatio,
    method: Method,
    limits: Limits,
    blocks: int = 0,
    bootstrap: tuple[float, float] | None = None,
) -> Estimate:
    """Put a log-ratio back on the scale of ratios: exp(mean ± t(df) · error), and the p of the same t.

    Smallest detectable effect: exp((t(1 - alpha/2, df) + t(power, df)) · error) - 1.
    """
    low = high = p = p_equivalence = detectable = None
    edge = math.log1p(limits.margin)
    if log_ratio.error == 0:
        low = high = exp(log_ratio.mean)
        p, p_equivalence, detectable = float(log_ratio.mean == 0), float(abs(log_ratio.mean) > edge), 0.0
    elif log_ratio.error is not None and log_ratio.df is not None:
        half, seen = _quantiles(log_ratio.df, limits)
        low, high = exp(log_ratio.mean - half * log_ratio.error), exp(log_ratio.mean + half * log_ratio.error)
        t, df = log_ratio.mean / log_ratio.error, log_ratio.df
        p = min(1.0, 2 * float(special.stdtr(df, -abs(t))))
        p_equivalence = float(special.stdtr(df, abs(t) - edge / log_ratio.error))
        detectable = exp(seen * log_ratio.error) - 1
    return Estimate(
        ratio=exp(log_ratio.mean),
        low=low,
        high=high,
        confidence=limits.confidence,
        bootstrap_low=exp(bootstrap[0]) if bootstrap else None,
        bootstrap_high=exp(bootstrap[1]) if bootstrap else None,
        detectable=detectable,
        method=method,
        blocks=blocks,
        units=log_ratio.units,
        df=log_ratio.df,
        p_equivalence=p_equivalence,
        p=p,
    )


def exp(x: float) -> float:
    """e to the x, kept finite and positive: two blocks that disagree wildly know next to nothing."""
    return math.exp(max(-LARGEST, min(x, LARGEST)))


def _quantiles(df: float, limits: Limits) -> tuple[float, float]:
    """Half an interval, and the smallest detectable effect, both in standard errors."""
    half = float(special.stdtrit(df, (1 + limits.confidence) / 2))
    return half, float(special.stdtrit(df, 1 - limits.alpha / 2) + special.stdtrit(df, POWER))
