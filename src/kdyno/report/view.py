"""What tables and plots of a comparison have in common: first lines, and gains on a common scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdyno.verdicts.checks import summaries
from kdyno.verdicts.model import Report, RunReport
from kdyno.verdicts.rows import Row, Span, mean_row, rows_of

NO_SELFTEST = (
    "no self-test of this host in this lane: `kdyno selftest --aa --lane {lane}` measures how often kdyno is wrong here"
)


@dataclass(frozen=True)
class Axis:
    """The gains at which a common axis begins and ends: below and above 0."""

    low: float
    high: float


@dataclass(frozen=True)
class Sides:
    """What the sides of no effect are called."""

    left: str
    right: str


def sides(report: Report) -> Sides:
    """Faster is right, and so is fewer; where nobody knows which is better, higher is."""
    quantities = {comparison.quantity for comparison in report.comparisons if comparison.direction}
    if not quantities and report.comparisons:
        return Sides("lower", "higher")
    if quantities == {"count"}:
        return Sides("more", "fewer")
    return Sides("worse", "better") if len(quantities) > 1 else Sides("slower", "faster")


def first_lines(report: Report) -> list[str]:
    """What the values are, and how far this host is to be trusted: the first words of a report after its notices."""
    if not isinstance(report, RunReport):
        return [report.measured]
    replayed = not any(variant.images for variant in report.run.variants)
    unknown = [] if replayed else [NO_SELFTEST.format(lane=report.run.lane)]
    links = [report.link_order.sentence] if report.link_order else []
    trust = [report.selftest.sentence] if report.selftest else unknown
    return [report.measured, *trust, *links, *summaries(report.checks)]


def drawn(report: Report, variant: str) -> list[Row]:
    """The rows that plots show: those with an interval, and the geometric mean if it is one of several benchmarks."""
    own, mean = rows_of(report, variant), mean_row(report, variant)
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
