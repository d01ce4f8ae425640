"""The effects that a run of some size can see: by the rule of the judge, or, for planning, by the power of the t-test
behind it.

Effects are fractions (0.01 is 1 %), taken on the log scale; `sd` is that of one replicate's log-ratio for a paired
design, and of one value's logarithm in either group for an unpaired one.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from kdyno.base.arrays import Values
from kdyno.base.frozen import Frozen
from kdyno.judge.stats.detectable import chances
from kdyno.judge.stats.detectable import detectable as by_rule
from kdyno.judge.stats.estimate import POWER, EstimateLimits, exp

MOST = 1_000_000
"""The number of replicates that nobody exceeds."""

NS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
SHARES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
"""Effects of a curve, in smallest detectable effects (on the log scale)."""


class PowerPoint(Frozen):
    """The probability of seeing an effect (a fraction) with n replicates."""

    n: int
    effect: float
    power: float


class PowerCurve(Frozen):
    """The effects that a variant's comparison could have seen, given the spread that was found."""

    variant: str
    n: int
    """Replicates of this run."""
    sd: float
    """The standard deviation of one paired log-ratio, or pooled over both groups."""
    detectable: tuple[PowerPoint, ...]
    """Smallest effect that is called different in 80 % of runs, over n."""
    power: tuple[PowerPoint, ...]
    """The probability with which a run of this size calls effects different."""
    blocks_needed: int | None
    """Replicates that see an effect of the size of the margin with a power of 80 %; None above a million, or for no
    margin."""


def power(effect: ArrayLike, n: ArrayLike, sd: float, alpha: float, *, paired: bool = True) -> Values:
    """Return the probability with which n replicates (of each group) give p < alpha for an effect; arrays broadcast."""
    log_effect, size = np.broadcast_arrays(np.log1p(np.asarray(effect, dtype=float)), np.asarray(n, dtype=float))
    if sd == 0:
        return np.where(log_effect == 0, alpha, 1.0)
    errors = sd * np.sqrt((1 if paired else 2) / size)
    return _power(np.abs(log_effect) / errors, _df(size, paired), alpha)


def detectable(n: int, sd: float, limits: EstimateLimits, *, family: int = 1, paired: bool = True) -> float:
    """Return the smallest effect that n >= 2 replicates call different in 80 % of runs, by the rule of the judge."""
    error = _error(n, sd, paired)
    return by_rule(error, float(_df(n, paired)), limits, family=family) if error else 0.0


def find_replicates(effect: float, sd: float, alpha: float, *, aim: float = POWER, paired: bool = True) -> int | None:
    """Return the fewest replicates that see an effect with the requested power; None above a million, or for none."""
    if effect == 0:
        return None
    low, high = 1, 2
    while float(power(effect, high, sd, alpha, paired=paired)) < aim:
        low, high = high, 2 * high
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if float(power(effect, middle, sd, alpha, paired=paired)) < aim:
            low = middle
        else:
            high = middle
    return high


def curve(
    variant: str, n: int, sd: float, limits: EstimateLimits, *, family: int = 1, paired: bool = True
) -> PowerCurve:
    """Return the effects that n >= 2 replicates with this spread could have seen, and those that more of them would
    see.
    """
    sizes = sorted({*NS, n})
    error, df = _error(n, sd, paired), float(_df(n, paired))
    step = math.log1p(by_rule(error, df, limits, family=family))
    effects = [exp(share * step) - 1 for share in SHARES]
    return PowerCurve(
        variant=variant,
        n=n,
        sd=sd,
        detectable=tuple(
            PowerPoint(n=size, effect=detectable(size, sd, limits, family=family, paired=paired), power=POWER)
            for size in sizes
        ),
        power=tuple(
            PowerPoint(n=n, effect=effect, power=chance)
            for effect, chance in zip(effects, chances(effects, error, df, limits, family=family), strict=True)
        ),
        blocks_needed=find_replicates(limits.margin, sd, limits.alpha / family, paired=paired),
    )


def _df(n: ArrayLike, paired: bool) -> Values:
    size = np.asarray(n, dtype=float)
    return size - 1 if paired else 2 * size - 2


def _error(n: float, sd: float, paired: bool) -> float:
    """Return the standard error of a log-ratio."""
    return sd * math.sqrt((1 if paired else 2) / n)


def _power(shift: Values | float, df: Values | float, alpha: float) -> Values:
    """Return the power for an effect of so many standard errors."""
    bound = -special.stdtrit(df, alpha / 2)
    # far out the noncentral t is not a number where it should be 0: nothing is left of the bound
    missed, other_way = (np.nan_to_num(special.nctdtr(df, shift, end), nan=0.0) for end in (bound, -bound))
    return np.clip(np.asarray(1 - missed + other_way, dtype=np.float64), 0.0, 1.0)
