"""Which variants differ: all pairs, or all against the baseline, from moments, so that published summaries do.

scipy's tukey_hsd and dunnett compute the same, but want the values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
import scipy

from kdyno.judge.diagnostics import studentized
from kdyno.judge.diagnostics.groups import ALIKE, Group, Noise, pooled, ratio_of, sd_ratio
from kdyno.judge.diagnostics.tables import PairTable, PairTest, Scale

SEED = 20130620
"""For the integration over the multivariate t, which is by random points."""

MOST = 20
"""Variants; more make more pairs than anybody reads."""


def pair_tables(
    groups: Sequence[Group], scale: Scale, alpha: float, noise: Noise | None = None
) -> tuple[PairTable, ...]:
    """All pairs by Tukey and by Games and Howell, the one that fits the spreads first; none for under three variants.

    Two variants need no table of pairs: one comparison is what the verdict is about. `noise` is what blocks leave, if
    the groups are of complete blocks: only Tukey knows of it.
    """
    usable = [group for group in groups if group.n > 1]
    own = noise or pooled(usable)
    if not 3 <= len(usable) <= MOST or own is None:
        return ()
    ratio = sd_ratio(usable)
    spread = "a variant has no spread" if ratio is None else f"the largest sd is {ratio:.2g} times the smallest"
    alike = ratio is not None and ratio < ALIKE
    spread = f"{spread}: {'alike' if alike else 'not alike'}"
    first = tukey(usable, scale, alpha, own, f"{spread}; within blocks" if noise else spread)
    second = games_howell(usable, scale, alpha, f"{spread}; blocks not taken out" if noise else spread)
    return (first, second) if alike else (second, first)


def tukey(groups: Sequence[Group], scale: Scale, alpha: float, noise: Noise, reason: str = "") -> PairTable:
    """Tukey's honestly significant difference, with Kramer's (1956) standard error where sizes differ.

    Statistic: difference / √(variance/2 · (1/n + 1/m)).
    """
    tests = []
    for first, second in combinations(groups, 2):
        error = math.sqrt(noise.variance / 2 * (1 / first.n + 1 / second.n))
        tests.append(_range_test(first, second, scale, error, noise.df, len(groups), alpha, "tukey"))
    return PairTable(method="tukey", confidence=1 - alpha, tests=tuple(tests), reason=reason)


def games_howell(groups: Sequence[Group], scale: Scale, alpha: float, reason: str = "") -> PairTable:
    """Games & Howell (1976): Tukey's with each pair's own variances and Welch's degrees of freedom.

    A pair that has no spread at all is left out.
    """
    tests = []
    for first, second in combinations(groups, 2):
        parts = [group.variance / group.n for group in (first, second)]
        if sum(parts) == 0:
            continue
        df = sum(parts) ** 2 / sum(part**2 / (group.n - 1) for part, group in zip(parts, (first, second), strict=True))
        error = math.sqrt(sum(parts) / 2)
        tests.append(_range_test(first, second, scale, error, df, len(groups), alpha, "games-howell"))
    return PairTable(method="games-howell", confidence=1 - alpha, tests=tuple(tests), reason=reason)


def dunnett(
    groups: Sequence[Group], baseline: str, scale: Scale, alpha: float, noise: Noise | None = None
) -> PairTable | None:
    """Dunnett (1955): every variant against the baseline, spreads taken to be alike. None without a spread or baseline.

    `noise` is what blocks leave, if the groups are of complete blocks. The adjusted
    p is good to about 1e-4: multivariate t by quasi-random points, seeded.
    """
    control = [group for group in groups if group.variant == baseline]
    others = [group for group in groups if group.variant != baseline][:MOST]
    used = [*control, *others]
    own = noise or pooled(used)
    if not control or not others or own is None:
        return None
    variance, df = own.variance, own.df
    sizes = tuple(group.n for group in others)
    reach = _dunnett_quantile(1 - alpha, sizes, control[0].n, df)
    tests = []
    for group in others:
        error = math.sqrt(variance * (1 / group.n + 1 / control[0].n))
        difference = group.mean - control[0].mean
        t = difference / error
        tests.append(
            PairTest(
                first=group.variant,
                second=baseline,
                difference=difference,
                low=difference - reach * error,
                high=difference + reach * error,
                ratio=ratio_of(group, control[0], scale),
                statistic=t,
                p=_dunnett_tail(abs(t), sizes, control[0].n, df),
                method="dunnett",
            )
        )
    return PairTable(
        method="dunnett", confidence=1 - alpha, tests=tuple(tests), reason="within blocks" if noise else ""
    )


def _range_test(
    first: Group, second: Group, scale: Scale, error: float, df: float, k: int, alpha: float, method: str
) -> PairTest:
    difference = first.mean - second.mean
    q = abs(difference) / error
    reach = studentized.quantile(1 - alpha, k, df) * error
    return PairTest.model_validate(
        {
            "first": first.variant,
            "second": second.variant,
            "difference": difference,
            "low": difference - reach,
            "high": difference + reach,
            "ratio": ratio_of(first, second, scale),
            "statistic": q,
            "p": studentized.tail(q, k, df),
            "method": method,
        }
    )


def _dunnett_tail(t: float, sizes: tuple[int, ...], control: int, df: int) -> float:
    """The chance that any of the comparisons reaches |t|."""
    if len(sizes) == 1:
        return float(2 * scipy.stats.t.sf(t, df))
    loads = np.array([math.sqrt(n / (n + control)) for n in sizes])
    shape = np.outer(loads, loads)
    np.fill_diagonal(shape, 1.0)
    bound = np.full(len(sizes), t)
    inside = scipy.stats.multivariate_t.cdf(bound, shape=shape, df=df, lower_limit=-bound, random_state=SEED)
    alone = 2 * float(scipy.stats.t.sf(t, df))
    return min(max(1 - float(inside), alone), len(sizes) * alone, 1.0)


@lru_cache(maxsize=1024)
def _dunnett_quantile(confidence: float, sizes: tuple[int, ...], control: int, df: int) -> float:
    """Between what one comparison needs and what Bonferroni asks for."""
    low = float(scipy.stats.t.isf((1 - confidence) / 2, df))
    if len(sizes) == 1:
        return low
    high = float(scipy.stats.t.isf((1 - confidence) / 2 / len(sizes), df))

    def excess(t: float) -> float:
        return _dunnett_tail(t, sizes, control, df) - (1 - confidence)

    if excess(low) <= 0 or excess(high) >= 0:  # the two hardly differ, and the random points decide
        return high
    return float(scipy.optimize.brentq(excess, low, high, xtol=1e-4))
