"""The tables behind the verdicts on one benchmark, as rows of text: effects first, p-values last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kdyno.base.measurement import AnyBenchmark
from kdyno.base.text import clean, confidence, format_count, format_signed, limit, number, p_value, percent
from kdyno.judge.stats.compare import Comparison
from kdyno.judge.stats.diagnostics.tables import Analysis, AnovaTable, MixedTable, PairTable, Scale
from kdyno.judge.stats.estimate import EstimateLimits
from kdyno.judge.stats.planning.power import detectable
from kdyno.judge.stats.verdict import scoped_verdict
from kdyno.judge.verdicts.model import Report
from kdyno.judge.verdicts.rows import scope_mark

CORRECTIONS = {"holm": "Holm", "bh": "Benjamini-Hochberg"}
METHODS = {"tukey": "Tukey HSD", "games-howell": "Games-Howell", "dunnett": "Dunnett"}
ANOVAS = {"one-way": "one-way", "welch": "Welch", "blocked": "with blocks"}
MULTIPLES = (1, 2, 4)
"""The smallest detectable effect is given for a run of this run's size."""


@dataclass(frozen=True)
class Grid:
    """A table: all texts are clean; the first `words` columns are text, the others figures."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1
    note: str = ""
    folded: bool = False
    """Details that a reader doesn't need first: a page shows them on demand."""

    @property
    def by_column(self) -> str:
        """The cells on a line each, one column after the other, as the script of a page reads them: gzip makes less of
        a column than of its cells in rows.
        """
        return "\n".join(cell for column in zip(*self.rows, strict=True) for cell in column)


def grids(report: Report, analysis: Analysis) -> list[Grid]:
    """Return all tables of one benchmark: those with rows, and those with a reason for having none."""
    [benchmark] = (benchmark for benchmark in report.benchmarks if benchmark.name == analysis.benchmark)
    tables = [
        _effects(report, analysis),
        _groups(report, analysis, benchmark),
        _anova(analysis),
        *(_pairs(table, analysis.scale, benchmark, folded=place > 0) for place, table in enumerate(analysis.pairs)),
        *([_pairs(analysis.dunnett, analysis.scale, benchmark)] if analysis.dunnett else []),
        *([_mixed_grid(analysis.mixed)] if analysis.mixed else []),
        _assumptions(analysis),
        _power(report, analysis),
    ]
    return [_drop_empty_columns(grid) for grid in tables if grid.rows or grid.note]


def _drop_empty_columns(grid: Grid) -> Grid:
    """Leave out columns without any cell: medians of summaries, bootstraps of few blocks."""
    kept = [place for place in range(len(grid.columns)) if any(row[place] for row in grid.rows)]
    return replace(
        grid,
        columns=tuple(grid.columns[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in grid.rows),
        words=sum(place < grid.words for place in kept),
    )


def _effects(report: Report, analysis: Analysis) -> Grid:
    covered = confidence(report.confidence)
    mark = scope_mark(_comparisons_of_benchmark(report, analysis.benchmark))
    rows = []
    for comparison in _comparisons_of_benchmark(report, analysis.benchmark):
        if comparison.estimate is None:
            continue
        estimate = comparison.estimate
        rows.append(
            (
                clean(comparison.variant),
                scoped_verdict(comparison.verdict, comparison.scope).removesuffix(mark) if comparison.verdict else "",
                f"{format_signed(estimate.ratio - 1)} %",
                _span(estimate.low, estimate.high),
                _span(estimate.bootstrap_low, estimate.bootstrap_high),
                f"{percent(estimate.detectable)} %" if estimate.detectable is not None else "",
                str(estimate.units),
                _figure(estimate.df),
                p_value(estimate.p_equivalence),
                p_value(estimate.p),
                p_value(comparison.p_adjusted),
            )
        )
    return Grid(
        title=f"Against {clean(report.baseline)}{mark}",
        columns=(
            *("variant", "verdict", "effect", f"{covered} interval", "by bootstrap", "sees"),
            *("n", "df", "p TOST", "p", f"p {CORRECTIONS[report.correction]}"),
        ),
        rows=tuple(rows),
        words=2,
    )


def _groups(report: Report, analysis: Analysis, benchmark: AnyBenchmark) -> Grid:
    unit = clean(benchmark.unit)
    return Grid(
        title="Values",
        columns=("variant", "n", f"mean, {unit}" if unit else "mean", "sd", "sd, % of mean", "median"),
        rows=tuple(
            (
                clean(group.variant),
                f"{group.n:,}",
                _figure(group.mean),
                _figure(group.sd),
                percent(group.sd / group.mean) if group.sd is not None and group.mean else "",
                _figure(group.median),
            )
            for group in sorted(analysis.groups, key=lambda group: report.variants.index(group.variant))
        ),
    )


def _anova(analysis: Analysis) -> Grid:
    tables = [analysis.one_way, analysis.welch, *([analysis.blocked] if analysis.blocked else [])]
    reasons = dict.fromkeys(table.reason for table in tables if table.reason)
    scale = "on logarithms of the values" if analysis.scale == "log" else "on the values as published"
    legend = f"{scale}; ω² is the share of the variance that variants explain"
    rows = tuple(row for table in tables for row in _anova_rows(table))
    return Grid(
        title="Analysis of variance",
        columns=("analysis", "source", "ω²", "df", "sum of squares", "mean square", "F", "p"),
        rows=rows,
        words=2,
        note=clean("; ".join([*([legend] if rows else []), *reasons]) or analysis.reason),
    )


def _anova_rows(table: AnovaTable) -> list[tuple[str, ...]]:
    return [
        (
            ANOVAS[table.kind] if place == 0 else "",
            row.source,
            _figure(table.omega_squared, 3) if row.source == "variant" else "",
            _figure(row.df),
            _figure(row.sum_of_squares),
            _figure(row.mean_square),
            _figure(row.f),
            p_value(row.p),
        )
        for place, row in enumerate(table.rows)
    ]


def _pairs(table: PairTable, scale: Scale, benchmark: AnyBenchmark, *, folded: bool = False) -> Grid:
    unit = ", %" if scale == "log" else f", {clean(benchmark.unit)}" if benchmark.unit else ""
    statistic = "t" if table.method == "dunnett" else "Q"
    return Grid(
        title=f"{'Against the baseline' if table.method == 'dunnett' else 'All pairs'}: {METHODS[table.method]}",
        columns=("pair", "effect", f"{confidence(table.confidence)} interval{unit}", statistic, "p"),
        rows=tuple(
            (
                f"{clean(test.first)} / {clean(test.second)}",
                f"{format_signed(test.ratio - 1)} %",
                _log_span(test.low, test.high) if scale == "log" else f"{test.low:+.4g} to {test.high:+.4g}",
                f"{test.statistic:.3g}" if abs(test.statistic) < 1000 else f"{test.statistic:.0f}",
                p_value(test.p),
            )
            for test in table.tests
        ),
        note=clean(table.reason),
        folded=folded,
    )


def _mixed_grid(table: MixedTable) -> Grid:
    return Grid(
        title="Mixed model: blocks as random effects",
        columns=("variant", "effect", f"{confidence(table.confidence)} interval", "p"),
        rows=tuple(
            (
                clean(effect.variant),
                f"{format_signed(effect.ratio - 1)} %",
                _span(effect.low, effect.high),
                p_value(effect.p),
            )
            for effect in table.effects
        ),
        note=clean(table.reason),
    )


def _assumptions(analysis: Analysis) -> Grid:
    assumptions = analysis.assumptions
    if assumptions is None:
        return Grid("Assumptions", (), ())
    checks: list[tuple[str, str, str, float | None]] = [
        ("equal spread", "largest sd over the smallest", _figure(assumptions.sd_ratio, 3), None),
        ("equal spread", "Brown-Forsythe F", _figure(assumptions.spread_f, 3), assumptions.spread_p),
        ("normality of the residuals", "Shapiro-Wilk W", _figure(assumptions.normality_w), assumptions.normality_p),
        (
            "no drift",
            "trend over the order of measuring, % per 100",
            "" if assumptions.drift is None else format_signed(assumptions.drift),
            assumptions.drift_p,
        ),
        ("independence", "correlation of neighbours in that order", _figure(assumptions.autocorrelation, 2), None),
    ]
    return Grid(
        title="Assumptions",
        columns=("assumed", "looked at", "found", "p"),
        rows=tuple((what, how, shown, p_value(p)) for what, how, shown, p in checks if shown),
        words=2,
        note="shown for your own judgement; no verdict depends on them",
    )


def _power(report: Report, analysis: Analysis) -> Grid:
    methods = {
        comparison.variant: comparison.estimate.method
        for comparison in report.comparisons
        if comparison.benchmark == analysis.benchmark and comparison.estimate
    }
    limits = EstimateLimits(report.margin, report.alpha, report.confidence)
    rows = []
    for curve in sorted(analysis.power, key=lambda curve: report.variants.index(curve.variant)):
        paired = methods.get(curve.variant) != "welch"
        effects = (
            detectable(curve.n * times, curve.sd, limits, family=report.family, paired=paired) for times in MULTIPLES
        )
        needed = "" if curve.blocks_needed is None else f"{curve.blocks_needed:,}"
        spread = f"{percent(curve.sd)} %"
        rows.append(
            (clean(curve.variant), str(curve.n), spread, *(f"{percent(effect)} %" for effect in effects), needed)
        )
    return Grid(
        title="What could have been seen",
        columns=("variant", "n", "sd", "seen with n", "2 n", "4 n", f"n for {limit(report.margin)} %"),
        rows=tuple(rows),
        note=f"smallest effect that is called different in 80 % of runs of {format_count(report.family, 'comparison')}"
        if rows
        else "",
    )


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{format_signed(low - 1)} to {format_signed(high - 1)}"


def _log_span(low: float, high: float) -> str:
    return _span(*(math.exp(min(end, 700.0)) for end in (low, high)))


def _figure(value: float | None, digits: int = 4) -> str:
    """Return a number with so many digits; large ones as in all tables."""
    if value is None:
        return ""
    return number(value) if value >= 1000 else f"{value:.{digits}g}"


def sentences(report: Report, benchmark: str) -> Sequence[str]:
    """Return the findings on a benchmark, one sentence for each variant that has one. The text above the table of
    verdicts says what they all are about.
    """
    shown = [comparison for comparison in _comparisons_of_benchmark(report, benchmark) if comparison.sentence]
    mark = scope_mark(shown)
    return [f"{clean(one.variant)}: {clean(one.sentence.replace(mark, ''))}" for one in shown]


def _comparisons_of_benchmark(report: Report, benchmark: str) -> list[Comparison]:
    return [comparison for comparison in report.comparisons if comparison.benchmark == benchmark]
