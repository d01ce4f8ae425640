"""The common parts of the tables and plots of a comparison: first lines, and gains on a common scale."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kdyno.base.text import confidence, format_signed, limit
from kdyno.judge.stats.verdict import Scope, direction_words
from kdyno.judge.verdicts.checks import summaries
from kdyno.judge.verdicts.model import Report, RunReport
from kdyno.judge.verdicts.rows import Span, VerdictRow, table_rows

NO_SELFTEST = (
    "no self-test of this host in this lane: `kdyno selftest --aa --lane {lane}` measures how often kdyno is wrong here"
)


SCOPES: Mapping[Scope, str] = {
    "images": "each variant is one link order, and another may behave differently",
    "rounds": "one running kernel, and another boot of it may behave differently",
    "boots": "nothing says that there are several, and another may behave differently",
}
"""The scopes of verdicts that aren't about kernels."""
MOST_TICKS = 11
NEAREST = 1 / 20
"""Ticks that are closer, as a share of the axis, overlap."""
DIGITS = (1, 2, 5)


@dataclass(frozen=True)
class Axis:
    """The gains, as logarithms, at which a common axis begins and ends: below and above 0."""

    low: float
    high: float


@dataclass(frozen=True)
class SideNames:
    """The words for both sides of no effect."""

    left: str
    right: str


def sides(report: Report) -> SideNames:
    """Return the sides in the words of the verdicts: better is right; if the better direction is unknown, higher is."""
    known = {direction_words(one.direction, one.quantity) for one in report.comparisons if one.direction}
    if not known and report.comparisons:
        return SideNames(*direction_words(None, "speed"))
    return SideNames(*known.pop()) if len(known) == 1 else SideNames("worse", "better")


def first_lines(report: Report) -> list[str]:
    """Return the first words of a report after its notices: the kind of the values, and how far this host can be
    trusted.
    """
    if not isinstance(report, RunReport):
        return [report.measured]
    replayed = not any(variant.images for variant in report.run.variants)
    unknown = [] if replayed else [NO_SELFTEST.format(lane=report.run.lane)]
    links = [report.link_order.sentence] if report.link_order else []
    trust = [report.selftest.sentence] if report.selftest else unknown
    return [report.measured, *trust, *links, *summaries(report.checks)]


def plotted_rows(report: Report, variant: str) -> list[VerdictRow]:
    """Return the rows that plots show: those with an interval."""
    return [row for row in table_rows(report, variant) if row.span]


def axis(spans: list[Span], margin: float) -> Axis:
    """Return an axis for all: every effect and most intervals fit, so that one wild interval doesn't dominate it."""
    room = 1.5 * margin or 0.01
    low = [-room, *(1.1 * span.mid for span in spans)]
    high = [room, *(1.1 * span.mid for span in spans)]
    if spans:
        low.append(1.05 * float(np.quantile([span.low for span in spans], 0.1)))
        high.append(1.05 * float(np.quantile([span.high for span in spans], 0.9)))
    return Axis(min(low), max(high))


def legend(
    report: Report,
    tables: Mapping[str, Sequence[VerdictRow]],
    columns: Collection[str],
    shown: Axis,
    sides: SideNames,
) -> list[str]:
    """Return the meaning of the columns and bars that tables have; `tables` are their rows, by variant."""
    rows = [row for own in tables.values() for row in own]
    means = {row.unit for row in rows if row.is_mean and row.effect}
    marked = dict.fromkeys(row.scope for row in rows if row.verdict not in ("", "undecided") and row.scope in SCOPES)
    bars = (
        f"bars: gains, with {confidence(report.confidence)} intervals, on one logarithmic scale from "
        f"{percent_gain(shown.low)} to {percent_gain(shown.high)} %, right of the line is {sides.right}, dots at "
        f"the margin of {limit(report.margin)} %"
    )
    sees = "sees: the smallest effect that this judge calls different in 80 % of such runs"
    return [
        *(f"effect: of the value, and of the mean one of {unit}" for unit in sorted(means)),
        *([bars] if "bar" in columns else []),
        *([sees] if "sees" in columns else []),
        *(f"these {scope}: {SCOPES[scope]}" for scope in marked if not _is_noted(report, scope)),
    ]


def _is_noted(report: Report, scope: Scope) -> bool:
    """Return whether a notice of the report explains what verdicts on `these boots` are."""
    return any(f"these {scope}" in notice for notice in report.notices)


def percent_gain(gain: float) -> str:
    """Return a place on the axis in percent, never less than -100: `-50.0`, `+1.5`."""
    return format_signed(math.expm1(gain))


def ticks(shown: Axis) -> list[tuple[float, str]]:
    """Return places on an axis and their labels: even percents, or factors where the axis spans several of them."""
    least = NEAREST * (shown.high - shown.low)
    for step in (digit * 10.0**power for power in range(-7, 2) for digit in DIGITS):
        first, last = math.ceil(math.expm1(shown.low) / step), math.floor(math.expm1(shown.high) / step)
        if last - first >= MOST_TICKS:
            continue
        places = [math.log1p(number * step) for number in range(first, last + 1) if number * step > -1]
        if all(after - before >= least for before, after in pairwise(places)):
            return [
                (place, f"{percent:+g}" if (percent := round(100 * math.expm1(place), 6)) else "0") for place in places
            ]
    powers = range(math.ceil(shown.low / math.log(10)), math.floor(shown.high / math.log(10)) + 1)
    apart = max(1, math.ceil(least / math.log(10)), len(powers) // MOST_TICKS)
    return [(power * math.log(10), _factor(power)) for power in powers if power % apart == 0]


def _percent(percent: float) -> str:
    return f"{percent:+g}" if percent else "0"


def _factor(power: int) -> str:
    return "0" if power == 0 else f"{'×' if power > 0 else '÷'}{10 ** abs(power):,}"
