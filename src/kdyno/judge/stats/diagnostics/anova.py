"""Analysis of variance: whether the variants differ at all.

One-way and Welch's from moments, so that published summaries are enough; blocked from the values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import scipy

from kdyno.base.arrays import Values
from kdyno.judge.stats.diagnostics.blocks import Blocked, centre, residuals
from kdyno.judge.stats.diagnostics.groups import GroupMoments, Noise, pool_noise
from kdyno.judge.stats.diagnostics.tables import AnovaRow, AnovaTable

FEW = "fewer than two variants"
SINGLE = "single values: no spread known"
APART = "too few blocks have several variants"
EXACT = "all values of each variant agree: there is no noise to compare with"


def one_way(groups: Sequence[GroupMoments]) -> AnovaTable:
    """Return Fisher's one-way table; omega² after Hays (1963)."""
    if reason := _hopeless(groups):
        return AnovaTable(kind="one-way", reason=reason)
    between, df = _between(groups), len(groups) - 1
    noise = pool_noise(groups)
    if noise is None:
        return AnovaTable(kind="one-way", reason=EXACT)
    within, rest = noise.variance, noise.df
    return AnovaTable(
        kind="one-way",
        rows=(_row("variant", between, df, within, rest), _residual(within, rest)),
        omega_squared=_omega(between, df, within, between + within * rest),
    )


def welch(groups: Sequence[GroupMoments]) -> AnovaTable:
    """Return the table of Welch's test (1951), which doesn't assume equal spreads; it has no sums of squares."""
    if reason := _hopeless(groups):
        return AnovaTable(kind="welch", reason=reason)
    if min(group.n for group in groups) < 2 or min(group.variance for group in groups) == 0:
        return AnovaTable(kind="welch", reason="a variant without spread: its weight would be infinite")
    # brings pandas, which takes seconds to import: only an analysis pays for it
    from statsmodels.stats.oneway import anova_generic  # type: ignore[import-untyped]

    test = anova_generic(
        np.array([group.mean for group in groups]),
        np.array([group.variance for group in groups]),
        np.array([group.n for group in groups]),
        use_var="unequal",
    )
    df, rest = len(groups) - 1, float(test.df[1])
    f, p = float(test.statistic), float(test.pvalue)
    total = sum(group.n for group in groups)
    return AnovaTable(
        kind="welch",
        rows=(
            AnovaRow(source="variant", df=df, sum_of_squares=None, mean_square=None, f=f, p=p),
            AnovaRow(source="residual", df=rest, sum_of_squares=None, mean_square=None, f=None, p=None),
        ),
        omega_squared=max(0.0, df * (f - 1) / (df * (f - 1) + total)),
    )


def blocked_anova(table: Blocked) -> AnovaTable:
    """Return the table of randomised complete blocks, additive. If boots are missing, sums of squares are of type II:
    each source after the other (Yates 1934); they then don't add up to the total.
    """
    if len(table.names) < 2:
        return AnovaTable(kind="blocked", reason=FEW)
    if not len(table.logs):
        return AnovaTable(kind="blocked", reason=APART)
    values, count = table.logs, int(table.blocks.max()) + 1
    rest = residuals(table)
    design = centre(np.eye(len(table.names))[table.variants], table.blocks)
    df = int(np.linalg.matrix_rank(design.T @ design, tol=1e-9))
    df_rest = len(values) - count - df
    if df_rest < 1 or df < len(table.names) - 1:
        return AnovaTable(kind="blocked", reason=APART)
    within = float(rest @ rest)
    without_variants = _squares(centre(values, table.blocks))
    without_blocks = _squares(centre(values, table.variants))
    if within <= 1e-20 * (without_variants + without_blocks) or within == 0:
        return AnovaTable(kind="blocked", reason=EXACT)
    mean, between = within / df_rest, max(0.0, without_variants - within)
    rows = [_row("variant", between, df, mean, df_rest)]
    if count > 1:
        rows.append(_row("block", max(0.0, without_blocks - within), count - 1, mean, df_rest))
    return AnovaTable(
        kind="blocked",
        rows=(*rows, _residual(mean, df_rest)),
        omega_squared=_omega(between, df, mean, between + within),
    )


def noise_of(table: AnovaTable) -> Noise | None:
    """Return the noise that a table found."""
    for row in table.rows:
        if row.source == "residual" and row.mean_square:
            return Noise(row.mean_square, int(row.df))
    return None


def _squares(values: Values) -> float:
    return float(values @ values)


def _hopeless(groups: Sequence[GroupMoments]) -> str:
    if len(groups) < 2:
        return FEW
    return SINGLE if all(group.n < 2 for group in groups) else ""


def _between(groups: Sequence[GroupMoments]) -> float:
    grand = sum(group.n * group.mean for group in groups) / sum(group.n for group in groups)
    return sum(group.n * (group.mean - grand) ** 2 for group in groups)


def _row(source: Literal["variant", "block"], squares: float, df: int, within: float, rest: int) -> AnovaRow:
    f = squares / df / within
    return AnovaRow(
        source=source,
        df=df,
        sum_of_squares=squares,
        mean_square=squares / df,
        f=f if math.isfinite(f) else None,
        p=float(scipy.stats.f.sf(f, df, rest)),
    )


def _residual(within: float, rest: int) -> AnovaRow:
    return AnovaRow(source="residual", df=rest, sum_of_squares=within * rest, mean_square=within, f=None, p=None)


def _omega(between: float, df: int, within: float, total: float) -> float:
    return max(0.0, (between - df * within) / (total + within))
