"""The rows of the history's pages: a change, a benchmark of an index, two kernels beside each other, a curve."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kdyno.base.text import format_signed, number
from kdyno.judge.history.model import (
    ChangedBenchmark,
    HistoryAxis,
    HistoryBenchmark,
    HistoryChange,
    HistoryLine,
    TriageEntry,
)
from kdyno.judge.history.points import PointRatio
from kdyno.report.packing import pack

MOST_ROWS = 25
"""Benchmarks that a change lists; the largest effects."""
SPARK_POINTS = 40
SPARK_WIDTH, SPARK_HEIGHT = 120, 22


@dataclass(frozen=True)
class ShownRow:
    benchmark: str
    page: str
    recipe: str
    before: str
    after: str
    change: str
    is_worse: bool


@dataclass(frozen=True)
class ShownChange:
    """A change as its panel shows it."""

    id: str
    triage: TriageEntry | None
    before: str
    after: str
    worse: int
    better: int
    largest: str
    rows: Sequence[ShownRow]
    more: int
    also_differs: Sequence[str]
    bisect: str
    explain: str


@dataclass(frozen=True)
class BenchmarkRow:
    """A benchmark in the table of an index: the line with the newest kernel."""

    name: str
    page: str
    recipe: str
    others: int
    value: float
    shown: str
    step: float
    step_shown: str
    changes: int
    spark: str
    spark_points: int


@dataclass(frozen=True)
class PointRow:
    """A benchmark at two kernels."""

    benchmark: str
    page: str
    recipe: str
    before: str
    after: str
    step: float
    """The relative difference, for sorting."""
    change: str
    interval: str
    mark: str
    """The class of a difference beyond the margin."""


def shown_change(change: HistoryChange, pages: dict[str, str]) -> ShownChange:
    """Return a change as a page shows it; `pages` are the benchmarks' by name."""
    rows = [_changed_row(row, pages) for row in change.benchmarks[:MOST_ROWS]]
    return ShownChange(
        id=change.id,
        triage=change.triage,
        before=change.before.name,
        after=change.after.name,
        worse=change.worse,
        better=change.better,
        largest=f"{change.benchmarks[0].benchmark} {format_signed(change.benchmarks[0].ratio - 1)} %",
        rows=rows,
        more=len(change.benchmarks) - len(rows),
        also_differs=change.also_differs,
        bisect=change.bisect,
        explain=change.explain,
    )


def _changed_row(row: ChangedBenchmark, pages: dict[str, str]) -> ShownRow:
    before, after = (f"{number(value)} {row.unit}" for value in (row.before, row.after))
    change = f"{format_signed(row.ratio - 1)} %"
    return ShownRow(row.benchmark, pages[row.benchmark], row.recipe, before, after, change, row.is_worse)


def point_row(row: PointRatio, pages: dict[str, str]) -> PointRow:
    """Return a benchmark at two kernels as a page shows it."""
    before, after = (f"{number(value)} {row.unit}" for value in (row.before, row.after))
    interval = (
        ""
        if row.low is None or row.high is None
        else f"{format_signed(row.low - 1)} to {format_signed(row.high - 1)} %"
    )
    change = f"{format_signed(row.ratio - 1)} %"
    mark = ("worse-mark" if row.is_worse else "better-mark") if row.is_beyond else ""
    step = round(row.ratio - 1, 6)
    return PointRow(row.benchmark, pages[row.benchmark], row.recipe, before, after, step, change, interval, mark)


def benchmark_row(benchmark: HistoryBenchmark, pages: dict[str, str], changes: int) -> BenchmarkRow:
    """Return the row of an index: the curve that reaches the newest kernel."""
    line = max(benchmark.lines, key=lambda line: (line.points[-1].kernel, len(line.points)))
    newest, values = line.points[-1], [point.value for point in line.points[-SPARK_POINTS:]]
    step = newest.value / line.points[-2].value - 1 if len(line.points) > 1 else 0.0
    return BenchmarkRow(
        name=benchmark.name,
        page=pages[benchmark.name],
        recipe=line.recipe,
        others=len(benchmark.lines) - 1,
        value=round(newest.value, 6),
        shown=f"{number(newest.value)} {benchmark.unit}",
        step=round(step, 6),
        step_shown=f"{format_signed(step)} %" if len(line.points) > 1 else "",
        changes=changes,
        spark=_spark(values),
        spark_points=len(values),
    )


def _spark(values: Sequence[float]) -> str:
    """Return a path through the values."""
    logs = [math.log(value) for value in values]
    low, high = min(logs), max(logs)
    spread = max(high - low, 0.01)  # a line that moves by less than 1 % looks flat
    middle = (high + low) / 2
    width = SPARK_WIDTH / max(1, len(logs) - 1)
    places = (
        f"{place * width:.0f},{SPARK_HEIGHT / 2 - (log - middle) / spread * (SPARK_HEIGHT - 4):.1f}"
        for place, log in enumerate(logs)
    )
    return f"M{'L'.join(places)}" if len(logs) > 1 else ""


def chart_data(
    axis: HistoryAxis, labels: Sequence[str], benchmark: HistoryBenchmark, changes: Sequence[HistoryChange]
) -> str:
    """Return the data of a benchmark's chart, packed."""
    place_by_identity = {kernel.identity: place for place, kernel in enumerate(axis.kernels)}
    marks = []
    for change in changes:
        own = next(row for row in change.benchmarks if row.benchmark == benchmark.name)
        marks.append([place_by_identity[change.after.identity], own.is_worse])
    return pack(
        json.dumps(
            {
                "kernels": labels,
                "unit": benchmark.unit,
                "lines": [_line_data(line) for line in benchmark.lines],
                "changes": marks,
            },
            separators=(",", ":"),
        )
    )


def _line_data(line: HistoryLine) -> dict[str, Any]:
    points = line.points
    return {
        "recipe": line.recipe,
        "kernel": [point.kernel for point in points],
        "value": [_short(point.value) for point in points],
        "low": [_short(point.low) for point in points],
        "high": [_short(point.high) for point in points],
    }


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
