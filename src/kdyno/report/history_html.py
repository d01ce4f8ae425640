"""The history of a store as static pages: an index for each axis, and a page with a curve for each benchmark on it.

A page loads nothing but other pages of the directory when a link is followed. Every text from a store is escaped, and
the policy of a page names its scripts and its style by their hashes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from kdyno.base.errors import UserError
from kdyno.base.files import write_whole
from kdyno.base.text import clean, format_count, format_signed, limit, number
from kdyno.base.version import __version__
from kdyno.judge.history.divisive import FALSE_ALARMS, FEWEST
from kdyno.judge.history.model import (
    AxisSummary,
    ChangedBenchmark,
    History,
    HistoryAxis,
    HistoryBenchmark,
    HistoryChange,
    HistoryLine,
)
from kdyno.report import page
from kdyno.report.figures.style import VARIANT_COLOURS
from kdyno.report.packing import pack, read_template, source_hash, unpacking_script

INDEX = "index.html"
MOST_CHANGES = 40
"""Changes that a page has; the newest ones."""
MOST_ROWS = 25
"""Benchmarks that a change lists; the largest effects."""
SPARK_POINTS = 40
SPARK_WIDTH, SPARK_HEIGHT = 120, 22


class NotADirectory(UserError):
    message = "{path} can't hold the pages: {why}"
    hint = "name a directory that can be made, or is there: --html history"


@dataclass(frozen=True)
class PageFrame:
    """The style and the scripts of a page, and the policy that allows them alone."""

    style: Markup
    scripts: tuple[Markup, ...]

    @property
    def policy(self) -> Markup:
        scripts = " ".join(map(source_hash, self.scripts)) or "'none'"
        # uPlot sets styles by code, which no policy stops; no page has a style attribute.
        return Markup(
            f"default-src 'none'; script-src {scripts}; style-src {source_hash(self.style)}; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        )


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

    anchor: str
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
class AxisLink:
    page: str
    id: str
    title: str
    kernels: int
    benchmarks: int
    newest: Any


def write_pages(history: History, directory: Path) -> int:
    """Write the pages to a directory, each whole or not at all, the index last; return their number.

    Raise NotADirectory, NotWritable and DiskFull.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotADirectory(path=directory, why=error.strerror) from error
    number_of_pages = 0
    for name, text in render_pages(history):
        write_whole(directory / name, text)
        number_of_pages += 1
    return number_of_pages


def render_pages(history: History) -> Any:
    """Yield the name and the text of each page; that of the newest axis is the index, and comes last."""
    environment = _environment()
    links = [_link(summary, place) for place, summary in enumerate(history.report.axes)]
    changes_by_axis: dict[str, list[HistoryChange]] = defaultdict(list)
    for change in history.report.changes:
        changes_by_axis[change.axis].append(change)
    common = {"report": history.report, "version": __version__}
    index = environment.get_template("history_index.html.j2")
    for link, axis in reversed(list(zip(links, history.axes, strict=True))):
        changes = changes_by_axis[axis.id]
        pages = {benchmark.name: f"{axis.id}-{place}.html" for place, benchmark in enumerate(axis.benchmarks)}
        by_benchmark: dict[str, list[HistoryChange]] = defaultdict(list)
        for change in changes:
            for name in dict.fromkeys(row.benchmark for row in change.benchmarks):
                by_benchmark[name].append(change)
        labels = [kernel.name for kernel in axis.kernels]
        for benchmark in axis.benchmarks:
            own = by_benchmark[benchmark.name]
            yield (
                pages[benchmark.name],
                environment.get_template("history_benchmark.html.j2").render(
                    frame=_chart_frame(),
                    axis=axis,
                    benchmark=benchmark,
                    index=link.page,
                    changes=[_shown(change, pages) for change in own[:MOST_CHANGES]],
                    more_changes=max(0, len(own) - MOST_CHANGES),
                    data=_chart_data(axis, labels, benchmark, own),
                    **common,
                ),
            )
        yield (
            link.page,
            index.render(
                frame=_index_frame(),
                axis=axis,
                others=links,
                note=_note(axis),
                changes=[_shown(change, pages) for change in changes[:MOST_CHANGES]],
                more_changes=max(0, len(changes) - MOST_CHANGES),
                rows=[_row(benchmark, pages, len(by_benchmark[benchmark.name])) for benchmark in axis.benchmarks],
                **common,
            ),
        )
    if not links:
        yield INDEX, index.render(frame=_index_frame(), axis=None, others=[], changes=[], rows=[], **common)


def _link(summary: AxisSummary, place: int) -> AxisLink:
    name = f"axis-{summary.id}.html" if place else INDEX
    return AxisLink(name, summary.id, summary.title, summary.kernels, summary.benchmarks, summary.newest)


def _note(axis: HistoryAxis) -> str:
    if axis.is_exact:
        return f"Samples repeat here: a change is a difference of the same seeds beyond {limit(axis.margin)} %."
    window = f" Only the newest kernels are searched, without the first {axis.left_out:,}." if axis.left_out else ""
    return (
        f"Samples are noisy here: a change is one of the level, beyond {limit(axis.margin)} %, with {FEWEST} kernels "
        f"or more on both sides. Where nothing changes, {limit(FALSE_ALARMS)} % of axes have an alarm, by "
        "permutation."
        f"{window}"
    )


def _shown(change: HistoryChange, pages: dict[str, str]) -> ShownChange:
    rows = [_shown_row(row, pages) for row in change.benchmarks[:MOST_ROWS]]
    place = hashlib.sha256(f"{change.before.identity} {change.after.identity}".encode()).hexdigest()
    return ShownChange(
        anchor=f"change-{place[:12]}",
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


def _shown_row(row: ChangedBenchmark, pages: dict[str, str]) -> ShownRow:
    before, after = (f"{number(value)} {row.unit}" for value in (row.before, row.after))
    change = f"{format_signed(row.ratio - 1)} %"
    return ShownRow(row.benchmark, pages[row.benchmark], row.recipe, before, after, change, row.is_worse)


def _row(benchmark: HistoryBenchmark, pages: dict[str, str], changes: int) -> BenchmarkRow:
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


def _chart_data(
    axis: HistoryAxis, labels: Sequence[str], benchmark: HistoryBenchmark, changes: Sequence[HistoryChange]
) -> str:
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


def _without_unset(value: Any) -> Any:
    """Return a recipe without what it leaves unset at any depth: a trainee's recipe lists all of its keys."""
    if isinstance(value, dict):
        parts = {name: _without_unset(part) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part not in (None, [], {})}
    return [_without_unset(part) for part in value] if isinstance(value, list) else value


@cache
def _environment() -> Environment:
    environment = page.environment()
    environment.filters |= {
        "number": lambda value: f"{value:,}",
        "counted": format_count,
        "settings": lambda recipe: clean(json.dumps(_without_unset(recipe), ensure_ascii=False)),
    }
    return environment


@cache
def _index_frame() -> PageFrame:
    return PageFrame(_style("style.css", "history.css"), (_script("history.js"),))


@cache
def _chart_frame() -> PageFrame:
    colours = f"const COLOURS = {json.dumps(list(VARIANT_COLOURS))};\n"
    chart = Markup(colours + unpacking_script() + read_template("history_chart.js"))
    return PageFrame(_style("uplot-style.css", "style.css", "history.css"), (_script("uplot.min.js"), chart))


def _style(*names: str) -> Markup:
    return Markup("\n".join(map(read_template, names)))


def _script(name: str) -> Markup:
    return Markup(read_template(name))
