"""What tables and plots of a comparison have in common: rows of text, and gains on a common scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdyno.judge.compare import Judged
from kdyno.judge.estimate import Estimate
from kdyno.judge.verdict import percent, signed
from kdyno.report.clean import clean
from kdyno.report.model import RunReport
from kdyno.store.records import Direction, Lane

LANES: dict[Lane, str] = {
    "model": "instructions executed by an emulated CPU (virtual time), not time",
    "wall": "nanoseconds of the guest's clock",
}

PMU_CLOCKS = {
    "cycles": "cycles modelled from what the emulated PMU counted in the measured loops, not time",
    "instructions": "instructions that the emulated PMU counted in the measured loops, not time",
}
"""By `pmu_clock` among the facts of the machine."""

MEAN = "geometric mean"


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
    blocks: int
    dropped: int


def lane_line(report: RunReport) -> str:
    lane = report.run.lane
    return f"lane: {lane} — {PMU_CLOCKS.get(report.run.machine.get('pmu_clock', ''), LANES[lane])}"


def rows(report: RunReport, variant: str) -> list[Row]:
    """One row for each benchmark of a variant, in the order of the run."""
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


def mean_row(report: RunReport, variant: str) -> Row:
    """The row of the whole workload. Its effect is one of speed."""
    [mean] = (each for each in report.geometric_means if each.variant == variant)
    return _row(mean, f"{MEAN} ({mean.benchmarks})", "higher", unit="speed", values=(None, None), dropped=0)


def axis(spans: list[Span], margin: float) -> Axis:
    """Return an axis for all: every effect and most intervals fit, so that one wild interval doesn't rule it."""
    room = 1.5 * margin or 0.01
    low = [-room, *(1.1 * span.mid for span in spans)]
    high = [room, *(1.1 * span.mid for span in spans)]
    if spans:
        low.append(1.05 * float(np.quantile([span.low for span in spans], 0.1)))
        high.append(1.05 * float(np.quantile([span.high for span in spans], 0.9)))
    return Axis(min(low), max(high))


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
        blocks=found.blocks if found else 0,
        dropped=dropped,
    )


def _interval(found: Estimate | None) -> str:
    if found is None or found.low is None or found.high is None:
        return ""
    return f"{signed(found.low - 1)} to {signed(found.high - 1)} %"


def _span(found: Estimate | None, direction: Direction) -> Span | None:
    if found is None or found.low is None or found.high is None:
        return None
    if direction == "higher":
        return Span(found.low - 1, found.ratio - 1, found.high - 1)
    return Span(1 - found.high, 1 - found.ratio, 1 - found.low)
