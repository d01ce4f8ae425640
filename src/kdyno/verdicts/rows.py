"""Verdicts as rows of text: what terminal, HTML and plots show of one comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kdyno.judge.compare import Judged
from kdyno.judge.estimate import Estimate
from kdyno.judge.verdict import DIFFERENT, in_scope
from kdyno.measurement import Direction
from kdyno.text import clean, listed, number, percent, signed
from kdyno.verdicts.model import Report

MEAN = "geometric mean"


@dataclass(frozen=True)
class Span:
    """An effect with its interval as gains: fractions, positive where the variant is better."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True)
class Row:
    """One line of a table; all texts are clean. `span` is None where no spread is known."""

    name: str
    unit: str
    baseline: str
    variant: str
    effect: str
    interval: str
    sensitivity: str
    verdict: str
    """A verdict, or empty where there is none."""
    verdict_in_scope: str
    """`faster (these images)`"""
    reason: str
    caution: str
    """What the interval doesn't show."""
    sentence: str
    span: Span | None
    detectable: float | None
    """Smallest effect, as a fraction, that could have been seen."""
    replicates: str
    """What the interval rests on: `12`, `4 layouts (12)`."""
    dropped: int


def rows_of(report: Report, variant: str) -> list[Row]:
    """One row for each benchmark of a variant, in the order of the report."""
    units = {benchmark.name: benchmark.unit for benchmark in report.benchmarks}
    return [
        _row(
            comparison,
            comparison.benchmark,
            comparison.direction,
            unit=clean(units[comparison.benchmark]),
            values=(comparison.baseline_value, comparison.variant_value),
            dropped=comparison.dropped,
        )
        for comparison in report.comparisons
        if comparison.variant == variant
    ]


def mean_row(report: Report, variant: str) -> Row:
    """The row of the whole workload. Its effect is one of speed."""
    [mean] = (mean for mean in report.geometric_means if mean.variant == variant)
    return _row(mean, f"{MEAN} ({mean.benchmarks})", "higher", unit=mean.unit, values=(None, None), dropped=0)


def largest(rows: Sequence[Row]) -> list[Row]:
    """The rows that were judged different, the largest effects first; without the geometric mean."""
    differing = [(abs(math.log(max(1 + row.span.mid, 1e-9))), row) for row in rows if _differs(row) and row.span]
    return [row for _, row in sorted(differing, key=lambda size_and_row: -size_and_row[0])]


def _differs(row: Row) -> bool:
    return row.verdict in DIFFERENT and not row.name.startswith(MEAN)


def _row(
    judged: Judged,
    name: str,
    direction: Direction | None,
    *,
    unit: str,
    values: tuple[float | None, float | None],
    dropped: int,
) -> Row:
    estimate = judged.estimate
    baseline, variant = ("" if value is None else number(value) for value in values)
    return Row(
        name=clean(name),
        unit=unit,
        baseline=baseline,
        variant=variant,
        effect=f"{signed(estimate.ratio - 1)} %" if estimate else "",
        interval=_interval(estimate),
        sensitivity=_sensitivity(estimate),
        verdict=judged.verdict or "",
        verdict_in_scope=in_scope(judged.verdict, judged.scope) if judged.verdict else "",
        reason=clean(judged.reason),
        caution=clean(judged.caution),
        sentence=clean(judged.sentence),
        span=_span(estimate, direction),
        detectable=estimate.detectable if estimate else None,
        replicates=_replicates(estimate) if estimate else "",
        dropped=dropped,
    )


def grouped(rows: Sequence[Row], text_of: Callable[[Row], str]) -> list[tuple[str, str]]:
    """What is said of rows, once for all of which the same is said: their names, and what it is."""
    about: dict[str, list[str]] = {}
    for row in rows:
        if text := text_of(row):
            about.setdefault(text, []).append(row.name)
    return [(listed(names), text) for text, names in about.items()]


def _sensitivity(estimate: Estimate | None) -> str:
    if estimate is None or estimate.detectable is None:
        return "" if estimate is None or estimate.unseen is None else "alike"
    return f"{percent(estimate.detectable)} %"


def _interval(estimate: Estimate | None) -> str:
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    return f"{signed(estimate.low - 1)} to {signed(estimate.high - 1)} %"


def _replicates(estimate: Estimate) -> str:
    return f"{estimate.units} layouts ({estimate.blocks})" if estimate.method == "layouts" else str(estimate.units)


def _span(estimate: Estimate | None, direction: Direction | None) -> Span | None:
    """As gains; where nobody knows which is better, as it is. What agrees exactly is a point."""
    if estimate is None or (estimate.low is None and estimate.unseen is None):
        return None
    low, high = estimate.low or estimate.ratio, estimate.high or estimate.ratio
    if direction == "lower":
        return Span(1 - high, 1 - estimate.ratio, 1 - low)
    return Span(low - 1, estimate.ratio - 1, high - 1)
