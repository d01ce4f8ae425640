"""Verdicts as rows of text: what terminal, HTML and plots show of one comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kdyno.judge.compare import Judged
from kdyno.judge.estimate import Estimate
from kdyno.measurement import Direction
from kdyno.text import clean, number, percent, signed
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
    """One line of a table; all texts are clean. `span` is None where there is no interval."""

    name: str
    unit: str
    baseline: str
    variant: str
    effect: str
    interval: str
    seen: str
    verdict: str
    """A verdict, or empty where there is no comparison."""
    reason: str
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
            each,
            each.benchmark,
            each.direction,
            unit=clean(units[each.benchmark]),
            values=(each.baseline_value, each.variant_value),
            dropped=each.dropped,
        )
        for each in report.comparisons
        if each.variant == variant
    ]


def mean_row(report: Report, variant: str) -> Row:
    """The row of the whole workload. Its effect is one of speed."""
    [mean] = (each for each in report.geometric_means if each.variant == variant)
    return _row(mean, f"{MEAN} ({mean.benchmarks})", "higher", unit="speed", values=(None, None), dropped=0)


def largest(rows: Sequence[Row]) -> list[Row]:
    """The rows that were judged faster or slower, the largest effects first; without the geometric mean."""
    differing = [(abs(math.log(max(1 + row.span.mid, 1e-9))), row) for row in rows if _differs(row) and row.span]
    return [row for _, row in sorted(differing, key=lambda known: -known[0])]


def _differs(row: Row) -> bool:
    return row.verdict in ("faster", "slower") and not row.name.startswith(MEAN)


def _row(
    judged: Judged,
    name: str,
    direction: Direction,
    *,
    unit: str,
    values: tuple[float | None, float | None],
    dropped: int,
) -> Row:
    found = judged.estimate
    baseline, variant = ("" if value is None else number(value) for value in values)
    return Row(
        name=clean(name),
        unit=unit,
        baseline=baseline,
        variant=variant,
        effect=f"{signed(found.ratio - 1)} %" if found else "",
        interval=_interval(found),
        seen=f"{percent(found.detectable)} %" if found and found.detectable is not None else "",
        verdict=judged.verdict or "",
        reason=clean(judged.reason),
        sentence=clean(judged.sentence),
        span=_span(found, direction),
        detectable=found.detectable if found else None,
        replicates=_replicates(found) if found else "",
        dropped=dropped,
    )


def _interval(found: Estimate | None) -> str:
    if found is None or found.low is None or found.high is None:
        return ""
    return f"{signed(found.low - 1)} to {signed(found.high - 1)} %"


def _replicates(found: Estimate) -> str:
    return f"{found.units} layouts ({found.blocks})" if found.method == "layouts" else str(found.units)


def _span(found: Estimate | None, direction: Direction) -> Span | None:
    if found is None or found.low is None or found.high is None:
        return None
    if direction == "higher":
        return Span(found.low - 1, found.ratio - 1, found.high - 1)
    return Span(1 - found.high, 1 - found.ratio, 1 - found.low)
