"""The estimate of one ratio from the replicates: its interval, its p-values, and the effects that they can't
exclude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy import special

from kdyno.base.frozen import Frozen
from kdyno.judge.stats.logratio import LogRatio

CONFIDENCE = 0.95
"""Coverage of the intervals that kdyno shows, unless a run may stop early."""

POWER = 0.8
"""The probability with which an effect must be seen so that a run could have seen it."""

Method = Literal["paired", "welch", "layouts"]
"""paired: differences within blocks; layouts: the same, averaged within each layout; welch: independent groups."""

LARGEST = 700.0
"""The largest logarithm: e to more than that is not a number that JSON has."""


@dataclass(frozen=True)
class EstimateLimits:
    """The limits for an estimate; all are fractions."""

    margin: float
    alpha: float = 0.05
    confidence: float = CONFIDENCE


class Estimate(Frozen):
    """The known facts about one ratio. Ratios are raw values, variant over baseline; 1 is no difference."""

    ratio: float
    low: float | None
    """Ends of the interval. None when a single replicate leaves the spread unknown, and when all replicates agree
    exactly. If they agree but were rounded, the interval that rounding leaves open.
    """
    high: float | None
    confidence: float
    """Coverage of the interval, and of the bootstrap's: 0.95 unless the run may stop early."""
    bootstrap_low: float | None = None
    """Ends of the interval by the studentized bootstrap. None where everything agrees exactly, for summaries, at a
    confidence above 0.99, with fewer than five replicates, and with more than a thousand: it then agrees with the
    interval.
    """
    bootstrap_high: float | None = None
    detectable: float | None = None
    """Smallest effect, as a fraction, that the rule calls different in 80 % of runs of this size and spread."""
    unseen: float | None = None
    """If all replicates agree exactly: the largest share of boots in which an event may happen that n of them missed.
    The bound of 95 % confidence, 1 - 0.05^(1/n). None if replicates differ.
    """
    error: float | None = None
    """Standard error of ln(ratio)."""
    rounding: float = 0.0
    """The error that rounding of the values may have added to ln(ratio); the interval is wider by it on both sides."""
    method: Method
    blocks: int
    """Complete blocks: boots of both variants; 0 where values are not paired."""
    units: int
    """Replicates that the interval rests on: blocks, layouts, or values (of the smaller group)."""
    df: float | None
    """Degrees of freedom of the interval."""
    p_equivalence: float | None
    """The p of the hypothesis that the ratio is not within 1 ± margin: two one-sided t-tests (Schuirmann 1987)."""
    p: float | None
    """The p of the hypothesis that the ratio is 1; None if no spread is known."""


def estimate_ratio(
    log_ratio: LogRatio,
    method: Method,
    limits: EstimateLimits,
    blocks: int = 0,
    bootstrap: tuple[float, float] | None = None,
) -> Estimate:
    """Put a log-ratio back on the scale of ratios: exp(mean ± t(df) · error), and the p of the same t.

    Replicates that agree exactly have no spread and no test: their number bounds the effects that they can't exclude.
    """
    low = high = p = p_equivalence = unseen = None
    mean, error, df, rounding = log_ratio.mean, log_ratio.error, log_ratio.df, log_ratio.rounding
    if error == 0:
        unseen = unseen_share(log_ratio.units)
        if rounding:
            low, high = exp(mean - rounding), exp(mean + rounding)
    elif error is not None and df is not None:
        reach = float(special.stdtrit(df, (1 + limits.confidence) / 2)) * error + rounding
        low, high = exp(mean - reach), exp(mean + reach)
        p = min(1.0, 2 * float(special.stdtr(df, -max(0.0, abs(mean) - rounding) / error)))
        p_equivalence = float(special.stdtr(df, (abs(mean) + rounding - math.log1p(limits.margin)) / error))
    return Estimate(
        ratio=exp(mean),
        low=low,
        high=high,
        confidence=limits.confidence,
        bootstrap_low=exp(bootstrap[0]) if bootstrap else None,
        bootstrap_high=exp(bootstrap[1]) if bootstrap else None,
        unseen=unseen,
        error=error,
        rounding=rounding,
        method=method,
        blocks=blocks,
        units=log_ratio.units,
        df=df,
        p_equivalence=p_equivalence,
        p=p,
    )


def unseen_share(replicates: int) -> float:
    """Return the largest share of boots that behave differently and that this many boots miss in 5 % of cases."""
    return float(-math.expm1(math.log(1 - CONFIDENCE) / replicates))


def exp(x: float) -> float:
    """Return e to the x, kept finite and positive: two blocks that disagree wildly tell almost nothing."""
    return math.exp(max(-LARGEST, min(x, LARGEST)))
