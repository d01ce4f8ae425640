"""Verdicts as rows of text: the part of one comparison that terminal, HTML and plots show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kdyno.base.measurement import Direction
from kdyno.base.text import clean, format_list, format_signed, number, percent
from kdyno.judge.stats.compare import GeometricMean, Judged
from kdyno.judge.stats.estimate import Estimate
from kdyno.judge.stats.verdict import DIFFERENT, Scope, Verdict, mark_of, scoped_verdict
from kdyno.judge.verdicts.model import Report

MEAN = "geometric mean"


@dataclass(frozen=True)
class Span:
    """An effect with its interval as gains, on the one scale that benchmarks and their mean share: the logarithm of the
    ratio of speeds, or of work per count. Positive is better; if the better direction is unknown, it is that of the
    values.
    """

    low: float
    mid: float
    high: float


@dataclass(frozen=True)
class VerdictRow:
    """One line of a table; all texts are clean. `span` is None if no spread is known."""

    name: str
    unit: str
    baseline: str
    variant: str
    effect: str
    interval: str
    sensitivity: str
    verdict: Verdict | Literal[""]
    """A verdict; empty if there is none."""
    scope: Scope
    verdict_shown: str
    """The verdict as its table shows it: `faster (these boots)` if rows differ in their scope, else `faster`."""
    reason: str
    caution: str
    """A caution about the interval."""
    sentence: str
    span: Span | None
    detectable: float | None
    """Smallest effect, as a fraction, that could have been seen."""
    replicates: str
    """The number of replicates behind the interval: `12`, `4 layouts (12)`."""
    dropped: int
    is_mean: bool = False
    """Whether it is the row of all benchmarks together."""
    ratio: float | None = None
    """The variant's value over the baseline's, or that of the mean."""


def rows_of(report: Report, variant: str) -> list[VerdictRow]:
    """Return one row for each benchmark of a variant, in the order of the report."""
    units = {benchmark.name: benchmark.unit for benchmark in report.benchmarks}
    mark = scope_mark(judged_of_variant(report, variant))
    return [
        _row(
            comparison,
            mark,
            comparison.benchmark,
            comparison.direction,
            unit=clean(units[comparison.benchmark]),
            values=(comparison.baseline_value, comparison.variant_value),
            dropped=comparison.dropped,
        )
        for comparison in report.comparisons
        if comparison.variant == variant
    ]


def mean_row(report: Report, variant: str) -> VerdictRow | None:
    """Return the row of the whole workload; None for one benchmark, which has no mean. Its effect is one of speed."""
    mean = mean_of(report, variant)
    if mean is None:
        return None
    mark = scope_mark(judged_of_variant(report, variant))
    row = _row(mean, mark, f"{MEAN} ({mean.benchmarks})", "higher", unit=mean.unit, values=(None, None), dropped=0)
    return replace(row, is_mean=True)


def mean_of(report: Report, variant: str) -> GeometricMean | None:
    """Return the geometric mean of a variant; None for one benchmark, where it adds nothing, and for several of which
    none has a better direction.
    """
    [mean] = (mean for mean in report.geometric_means if mean.variant == variant)
    adds_nothing = mean.benchmarks == 1 or len(report.benchmarks) == 1
    has_no_direction = mean.benchmarks == 0 and len(report.benchmarks) > 0
    return None if adds_nothing or has_no_direction else mean


def table_rows(report: Report, variant: str) -> list[VerdictRow]:
    """Return the rows of a variant's table, the geometric mean last."""
    mean = mean_row(report, variant)
    return [*rows_of(report, variant), *([mean] if mean else [])]


def judged_of_variant(report: Report, variant: str) -> list[Judged]:
    """Return all comparisons of a variant, its geometric mean included."""
    return [judged for judged in (*report.comparisons, *report.geometric_means) if judged.variant == variant]


def scope_mark(judged: Iterable[Judged]) -> str:
    """Return ` (these images)` if that is the scope of all verdicts, so that it is said once; empty if they are about
    kernels, or differ in it.
    """
    scopes = {one.scope for one in judged if one.verdict not in (None, "undecided")}
    return mark_of(scopes.pop()) if len(scopes) == 1 else ""


def largest(rows: Sequence[VerdictRow]) -> list[VerdictRow]:
    """Return the rows that were judged different, the largest effects first; without the geometric mean."""
    differing = [(abs(row.span.mid), row) for row in rows if row.verdict in DIFFERENT and not row.is_mean and row.span]
    return [row for _, row in sorted(differing, key=lambda size_and_row: -size_and_row[0])]


def _row(
    judged: Judged,
    mark: str,
    name: str,
    direction: Direction | None,
    *,
    unit: str,
    values: tuple[float | None, float | None],
    dropped: int,
) -> VerdictRow:
    estimate = judged.estimate
    baseline, variant = ("" if value is None else number(value) for value in values)
    return VerdictRow(
        name=clean(name),
        unit=unit,
        baseline=baseline,
        variant=variant,
        effect=f"{format_signed(estimate.ratio - 1)} %" if estimate else "",
        interval=_interval(estimate),
        sensitivity=_sensitivity(estimate),
        verdict=judged.verdict or "",
        scope=judged.scope,
        verdict_shown=scoped_verdict(judged.verdict, judged.scope).removesuffix(mark) if judged.verdict else "",
        reason=clean(judged.reason),
        caution=clean(judged.caution),
        sentence=clean(judged.sentence.replace(mark, "")),
        span=_span(estimate, direction),
        detectable=estimate.detectable if estimate else None,
        replicates=_replicates(estimate) if estimate else "",
        dropped=dropped,
        ratio=estimate.ratio if estimate else None,
    )


def group_sentences(rows: Sequence[VerdictRow], text_of: Callable[[VerdictRow], str]) -> list[tuple[str, str]]:
    """Return the sentences on rows, once for all rows with the same one: their names, and the sentence."""
    names_by_sentence: dict[str, list[str]] = {}
    for row in rows:
        if text := text_of(row):
            names_by_sentence.setdefault(text, []).append(row.name)
    return [(format_list(names), text) for text, names in names_by_sentence.items()]


def _sensitivity(estimate: Estimate | None) -> str:
    if estimate is None or estimate.detectable is None:
        return "" if estimate is None or estimate.unseen is None else "alike"
    return f"{percent(estimate.detectable)} %"


def _interval(estimate: Estimate | None) -> str:
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return f"{format_signed(estimate.low - 1)} to {format_signed(estimate.high - 1)} %"


def _replicates(estimate: Estimate) -> str:
    return f"{estimate.units} layouts ({estimate.blocks})" if estimate.method == "layouts" else str(estimate.units)


def _span(estimate: Estimate | None, direction: Direction | None) -> Span | None:
    """Return the span; a point for values that agree exactly."""
    if estimate is None or (estimate.low is None and estimate.unseen is None):
        return None
    low, mid, high = map(math.log, (estimate.low or estimate.ratio, estimate.ratio, estimate.high or estimate.ratio))
    return Span(-high, -mid, -low) if direction == "lower" else Span(low, mid, high)
