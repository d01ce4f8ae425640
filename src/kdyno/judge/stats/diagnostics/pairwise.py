"""The variants that differ: all pairs, or all against the baseline, from moments, so that published summaries are
enough.

scipy's tukey_hsd and dunnett compute the same, but need the values; Dunnett's probabilities are in `many_to_one`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from kdyno.judge.stats.diagnostics import many_to_one, studentized
from kdyno.judge.stats.diagnostics.groups import ALIKE, GroupMoments, Noise, pool_noise, ratio_of, sd_ratio
from kdyno.judge.stats.diagnostics.tables import PairTable, PairTest, Scale

MOST = 20
"""Variants in a table of all pairs; more would make more pairs than anybody reads."""


def pair_tables(
    groups: Sequence[GroupMoments], scale: Scale, alpha: float, noise: Noise | None = None
) -> tuple[PairTable, ...]:
    """Return all pairs by Tukey and by Games and Howell, the one that fits the spreads first; none for under three
    variants.

    Two variants need no table of pairs: the verdict is about their only comparison. `noise` is the noise that blocks
    leave, if the groups are of complete blocks: only Tukey uses it. For more than `MOST` variants there is one table
    without rows, which says so.
    """
    usable = [group for group in groups if group.n > 1]
    own = noise or pool_noise(usable)
    if len(usable) < 3 or own is None:
        return ()
    if len(usable) > MOST:
        pairs = math.comb(len(usable), 2)
        reason = f"not made: {len(usable)} variants are {pairs} pairs; it is made for up to {MOST} variants"
        return (PairTable(method="tukey", confidence=1 - alpha, reason=reason),)
    ratio = sd_ratio(usable)
    spread = "a variant has no spread" if ratio is None else f"the largest sd is {ratio:.2g} times the smallest"
    alike = ratio is not None and ratio < ALIKE
    spread = f"{spread}: {'alike' if alike else 'not alike'}"
    first = tukey(usable, scale, alpha, own, f"{spread}; within blocks" if noise else spread)
    second = games_howell(usable, scale, alpha, f"{spread}; blocks not taken out" if noise else spread)
    return (first, second) if alike else (second, first)


def tukey(groups: Sequence[GroupMoments], scale: Scale, alpha: float, noise: Noise, reason: str = "") -> PairTable:
    """Return the table of Tukey's honestly significant difference, with Kramer's (1956) standard error if sizes differ.

    Statistic: difference / √(variance/2 · (1/n + 1/m)).
    """
    tests = []
    for first, second in combinations(groups, 2):
        error = math.sqrt(noise.variance / 2 * (1 / first.n + 1 / second.n))
        tests.append(_range_test(first, second, scale, error, noise.df, len(groups), alpha, "tukey"))
    return PairTable(method="tukey", confidence=1 - alpha, tests=tuple(tests), reason=reason)


def games_howell(groups: Sequence[GroupMoments], scale: Scale, alpha: float, reason: str = "") -> PairTable:
    """Return the table of Games & Howell (1976): Tukey's with each pair's own variances and Welch's degrees of freedom.

    A pair without any spread is left out.
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
    groups: Sequence[GroupMoments], baseline: str, scale: Scale, alpha: float, noise: Noise | None = None
) -> PairTable | None:
    """Return the table of Dunnett (1955): every variant against the baseline, spreads taken to be alike. None without a
    spread or baseline.

    `noise` is the noise that blocks leave, if the groups are of complete blocks.
    """
    control = [group for group in groups if group.variant == baseline]
    others = [group for group in groups if group.variant != baseline]
    used = [*control, *others]
    own = noise or pool_noise(used)
    if not control or not others or own is None:
        return None
    variance, df = own.variance, own.df
    sizes = tuple(group.n for group in others)
    reach = many_to_one.quantile(1 - alpha, sizes, control[0].n, df)
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
                p=many_to_one.tail(abs(t), sizes, control[0].n, df),
                method="dunnett",
            )
        )
    return PairTable(
        method="dunnett", confidence=1 - alpha, tests=tuple(tests), reason="within blocks" if noise else ""
    )


def _range_test(
    first: GroupMoments, second: GroupMoments, scale: Scale, error: float, df: float, k: int, alpha: float, method: str
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
