"""What tables and plots of a comparison have in common: rows of text, and gains on a common scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdyno.judge.compare import Judged
from kdyno.judge.estimate import Estimate
from kdyno.judge.verdict import percent, signed
from kdyno.report.clean import clean
from kdyno.report.model import Report, RunReport
from kdyno.store.records import Direction

MEAN = "geometric mean"
NO_SELFTEST = (
    "no self-test of this host in this lane: `kdyno selftest --aa --lane {lane}` measures how often kdyno is wrong here"
)


@dataclass(frozen=True)
class Span:
    """An effect with its interval as gains: fractions, positive where the variant is better."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True)
class Axis:
    """The gains at which a common axis begins and ends: below and above 0."""

    low: float
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


def first_lines(report: Report) -> list[str]:
    """What the values are, and how far this host is to be trusted: the first words of a report after its notices."""
    if not isinstance(report, RunReport):
        return [report.measured]
    if report.selftest:
        return [report.measured, report.selftest.sentence]
    replayed = not any(variant.images for variant in report.run.variants)
    return [report.measured, *([] if replayed else [NO_SELFTEST.format(lane=report.run.lane)])]


def rows(report: Report, variant: str) -> list[Row]:
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


def drawn(report: Report, variant: str) -> list[Row]:
    """The rows that plots show: those with an interval, and the geometric mean if it is one of several benchmarks."""
    own, mean = rows(report, variant), mean_row(report, variant)
    shown = [row for row in own if row.span]
    return [*shown, mean] if mean.span and len(shown) > 1 else shown


def axis(spans: list[Span], margin: float) -> Axis:
    """Return an axis for all: every effect and most intervals fit, so that one wild interval doesn't rule it."""
    room = 1.5 * margin or 0.01
    low = [-room, *(1.1 * span.mid for span in spans)]
    high = [room, *(1.1 * span.mid for span in spans)]
    if spans:
        low.append(1.05 * float(np.quantile([span.low for span in spans], 0.1)))
        high.append(1.05 * float(np.quantile([span.high for span in spans], 0.9)))
    return Axis(min(low), max(high))


def largest(rows: Sequence[Row]) -> list[Row]:
    """The rows that were judged faster or slower, the largest effects first; without the geometric mean."""
    differing = [(abs(math.log(max(1 + row.span.mid, 1e-9))), row) for row in rows if _differs(row) and row.span]
    return [row for _, row in sorted(differing, key=lambda known: -known[0])]


def _differs(row: Row) -> bool:
    return row.verdict in ("faster", "slower") and not row.name.startswith(MEAN)


def p_value(p: float | None) -> str:
    """`0.032`; what is smaller than one in ten thousand is not told apart: `< 0.0001`."""
    if p is None:
        return ""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def number(value: float) -> str:
    """Four digits, with k, M or G for large numbers."""
    for limit, unit, suffix in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e5, 1e3, "k")):
        if value >= limit:
            return f"{value / unit:.4g}{suffix}" if value < 1e4 * unit else f"{value / unit:,.0f}{suffix}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


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
