"""The tables behind a verdict. A value that can't be computed is None; no number is infinite or not a number."""

from __future__ import annotations

from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.judge.stats.planning.power import PowerCurve

Scale = Literal["log", "raw"]
"""log: natural logarithms of the values, so that differences are ratios. raw: the benchmark's unit, as published."""


class GroupSummary(Frozen):
    """One variant's values, in the benchmark's unit."""

    variant: str
    n: int
    mean: float
    sd: float | None
    """With n - 1 in the denominator; None for a single value, and for values too far apart for a double."""
    median: float | None
    """None if only a summary was published."""


class AnovaRow(Frozen):
    """One source of variation."""

    source: Literal["variant", "block", "residual"]
    df: float
    sum_of_squares: float | None
    mean_square: float | None
    f: float | None
    p: float | None


class AnovaTable(Frozen):
    """An analysis of variance; without rows if it can't be made, with the reason."""

    kind: Literal["one-way", "welch", "blocked"]
    rows: tuple[AnovaRow, ...] = ()
    omega_squared: float | None = None
    """Share of the variance that belongs to the variants, corrected for chance; of "blocked", without blocks."""
    reason: str = ""


class PairTest(Frozen):
    """Two variants of one benchmark compared on the scale of the table; `first` minus `second`."""

    first: str
    second: str
    difference: float
    low: float
    """Ends of the simultaneous interval of the difference."""
    high: float
    ratio: float
    """first / second: geometric means on the log scale, means on the raw one."""
    statistic: float
    """Q of the studentized range (tukey, games-howell), t (dunnett)."""
    p: float
    """The p-value, adjusted for all pairs of this table."""
    method: Literal["tukey", "games-howell", "dunnett"]


class PairTable(Frozen):
    """All pairs, or all against the baseline."""

    method: Literal["tukey", "games-howell", "dunnett"]
    confidence: float
    tests: tuple[PairTest, ...] = ()
    reason: str = ""
    """The reason for the first or the second kind of table, and whether it takes blocks out."""


class Residual(Frozen):
    """The residual of a value after its variant's mean is taken out; blocks stay in, so that a drift shows."""

    variant: str
    order: int | None
    """Place in the order of measuring."""
    fitted: float
    """The value in the benchmark's unit."""
    percent: float
    """The residual, in percent of the fitted value."""


class Assumptions(Frozen):
    """Checks of the tables' assumptions. Shown to the reader; no verdict depends on them."""

    sd_ratio: float | None
    """The largest sd of a variant over the smallest."""
    spread_f: float | None
    """Brown-Forsythe: equal spread of all variants."""
    spread_p: float | None
    normality_w: float | None
    """Shapiro-Wilk of the residuals after blocks are taken out too; of 5000 residuals at most."""
    normality_p: float | None
    drift: float | None
    """Trend of the residuals over the order of measuring, as a fraction per 100 places in it."""
    drift_p: float | None
    autocorrelation: float | None
    """The correlation of each residual with the next in that order."""
    residuals: tuple[Residual, ...]
    """At most 2000 residuals, evenly taken."""


class MixedEffect(Frozen):
    """A variant against the baseline by the mixed model."""

    variant: str
    ratio: float
    low: float
    high: float
    p: float


class MixedTable(Frozen):
    """A mixed model: effects of the variants are fixed, those of blocks (and layouts) random."""

    confidence: float
    effects: tuple[MixedEffect, ...] = ()
    converged: bool = False
    reason: str = ""
    """The reason for fitting it, or for missing effects."""


class Analysis(Frozen):
    """The tables of one benchmark. A table that can't be made is None, or gives the reason."""

    benchmark: str
    scale: Scale
    """The scale of all tables but `groups`: logarithms of values; raw if only summaries were published."""
    groups: tuple[GroupSummary, ...]
    one_way: AnovaTable
    welch: AnovaTable
    blocked: AnovaTable | None
    """None if values are not in blocks, or more than a hundred thousand."""
    assumptions: Assumptions | None
    """None if only summaries were published, or nothing varies."""
    pairs: tuple[PairTable, ...]
    """Tukey and Games-Howell; the one that fits the spreads comes first. Empty for fewer than three variants."""
    dunnett: PairTable | None
    """Every variant against the baseline; None without noise or baseline."""
    mixed: MixedTable | None
    """None if every block has every variant: the blocked table then gives the same."""
    power: tuple[PowerCurve, ...]
    """By variant, if its comparison with the baseline has a spread."""
    reason: str
    """The reason for a missing analysis; empty if there is one."""
