"""The tables that stand behind a verdict. What can't be computed is None; no number is infinite or not a number."""

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
    """With n - 1 in the denominator; None of a single value, and of values too far apart for a double."""
    median: float | None
    """None where only a summary was published."""


class AnovaRow(Frozen):
    """One source of variation."""

    source: Literal["variant", "block", "residual"]
    df: float
    sum_of_squares: float | None
    mean_square: float | None
    f: float | None
    p: float | None


class AnovaTable(Frozen):
    """An analysis of variance; without rows where it can't be made, and then the reason."""

    kind: Literal["one-way", "welch", "blocked"]
    rows: tuple[AnovaRow, ...] = ()
    omega_squared: float | None = None
    """Share of the variance that belongs to the variants, freed of what chance adds; of "blocked", without blocks."""
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
    """Adjusted for all pairs of this table."""
    method: Literal["tukey", "games-howell", "dunnett"]


class PairTable(Frozen):
    """All pairs, or all against the baseline."""

    method: Literal["tukey", "games-howell", "dunnett"]
    confidence: float
    tests: tuple[PairTest, ...] = ()
    reason: str = ""
    """Why this table is the first or the second, and whether it knows of blocks."""


class Residual(Frozen):
    """What is left of a value when its variant's mean is taken out; blocks stay in, so that a drift shows."""

    variant: str
    order: int | None
    """Place in the order of measuring."""
    fitted: float
    """In the benchmark's unit."""
    percent: float
    """Residual, in percent of the fitted value."""


class Assumptions(Frozen):
    """What the tables assume, looked at. Shown to the reader; no verdict depends on it."""

    sd_ratio: float | None
    """Largest sd of a variant over the smallest."""
    spread_f: float | None
    """Brown-Forsythe: equal spread of all variants."""
    spread_p: float | None
    normality_w: float | None
    """Shapiro-Wilk of what is left when blocks are taken out too; of 5000 residuals at most."""
    normality_p: float | None
    drift: float | None
    """Trend of the residuals over the order of measuring, as a fraction per 100 places in it."""
    drift_p: float | None
    autocorrelation: float | None
    """Of each residual with the next in that order."""
    residuals: tuple[Residual, ...]
    """At most 2000 of them, evenly taken."""


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
    """Why it was fitted, or why there are no effects."""


class Analysis(Frozen):
    """The tables of one benchmark. What can't be made is None, or says why."""

    benchmark: str
    scale: Scale
    """Of all tables but `groups`: logarithms of values; raw where only summaries were published."""
    groups: tuple[GroupSummary, ...]
    one_way: AnovaTable
    welch: AnovaTable
    blocked: AnovaTable | None
    """None where values are not in blocks, or more than a hundred thousand."""
    assumptions: Assumptions | None
    """None where only summaries were published, or nothing varies."""
    pairs: tuple[PairTable, ...]
    """Tukey and Games-Howell; the one that fits the spreads comes first. Empty for fewer than three variants."""
    dunnett: PairTable | None
    """Every variant against the baseline; None without noise or baseline."""
    mixed: MixedTable | None
    """None where every block has every variant: the blocked table then says the same."""
    power: tuple[PowerCurve, ...]
    """By variant, where its comparison with the baseline has a spread."""
    reason: str
    """Why nothing could be analysed; empty if something was."""
