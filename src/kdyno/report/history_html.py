"""The history of a store as pages: an index for each axis, and a page with a curve for each benchmark on it. They are
static files, or a server's (served/), which have forms, too.

A page loads nothing but other pages beside it when a link is followed. Every text from a store is escaped, and
the policy of a page names its scripts and its style by their hashes.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

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
    TriageEntry,
)
from kdyno.judge.history.points import PointRatio, names_of, point_ratios
from kdyno.report import page
from kdyno.report.figures.style import VARIANT_COLOURS
from kdyno.report.packing import pack, read_template, source_hash, unpacking_script
from kdyno.store.triage import TriageState

INDEX = "index.html"
MOST_CHANGES = 40
"""Changes that a page has; the newest ones."""
MOST_ROWS = 25
"""Benchmarks that a change lists; the largest effects."""
KERNELS_OFFERED = 200
"""Kernels whose names a form of a server completes; the newest ones."""
SPARK_POINTS = 40
SPARK_WIDTH, SPARK_HEIGHT = 120, 22


class NotADirectory(UserError):
    message = "{path} can't hold the pages: {why}"
    hint = "name a directory that can be made, or is there: --html history"


@dataclass(frozen=True)
class Viewer:
    """Somebody who asks a server for a page."""

    author: str | None
    """The name by which entries are signed; None for one who may only read."""


@dataclass(frozen=True)
class PageFrame:
    """The style and the scripts of a page, and the policy that allows them alone."""

    style: Markup
    scripts: tuple[Markup, ...]
    is_served: bool
    """A page of a server may have forms, which go to that server alone."""

    @property
    def policy(self) -> Markup:
        scripts = " ".join(map(source_hash, self.scripts)) or "'none'"
        forms = "'self'" if self.is_served else "'none'"
        # uPlot sets styles by code, which no policy stops; no page has a style attribute.
        return Markup(
            f"default-src 'none'; script-src {scripts}; style-src {source_hash(self.style)}; img-src data:; "
            f"base-uri 'none'; form-action {forms}"
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
    pages = HistoryPages(history)
    for name in pages.names:
        write_whole(directory / name, pages.render(name))
    return len(pages.names)


class HistoryPages:
    """The pages of a history by their names; each is made when it is asked for. Safe for threads."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._links = [_link(summary, place) for place, summary in enumerate(history.report.axes)]
        self._axis_by_page = dict(zip((link.page for link in self._links), history.axes, strict=True))
        self._benchmark_by_page = {
            page: (axis, benchmark)
            for axis in history.axes
            for page, benchmark in zip(_pages_of(axis).values(), axis.benchmarks, strict=True)
        }
        self._changes: dict[str, list[HistoryChange]] = defaultdict(list)
        for change in history.report.changes:
            self._changes[change.axis].append(change)

    @property
    def names(self) -> list[str]:
        """The pages of benchmarks, then those of axes; that of the newest axis is the index, and comes last."""
        return [*self._benchmark_by_page, *dict.fromkeys([*reversed(self._axis_by_page), INDEX])]

    def render(self, name: str, viewer: Viewer | None = None) -> str:
        """Return a page, for a file or for somebody who asks a server. Raise KeyError if there is none of this name."""
        if name in self._benchmark_by_page:
            return self._benchmark_page(*self._benchmark_by_page[name], viewer)
        if name == INDEX and not self._axis_by_page:
            frame = index_frame(viewer is not None)
            return self._render("history_index.html.j2", frame, viewer, axis=None, others=[], changes=[], rows=[])
        return self._axis_page(self._axis_by_page[name], viewer)

    def page_of_axis(self, axis: HistoryAxis) -> str:
        return next(page for page, other in self._axis_by_page.items() if other is axis)

    def _render(self, template: str, frame: PageFrame, viewer: Viewer | None, **parts: Any) -> str:
        common = {"report": self.history.report, "version": __version__, "states": get_args(TriageState)}
        return environment().get_template(template).render(frame=frame, viewer=viewer, **common, **parts)

    def _benchmark_page(self, axis: HistoryAxis, benchmark: HistoryBenchmark, viewer: Viewer | None) -> str:
        own = [
            change
            for change in self._changes[axis.id]
            if any(row.benchmark == benchmark.name for row in change.benchmarks)
        ]
        pages = _pages_of(axis)
        return self._render(
            "history_benchmark.html.j2",
            _chart_frame(viewer is not None),
            viewer,
            axis=axis,
            benchmark=benchmark,
            index=self.page_of_axis(axis),
            page=pages[benchmark.name],
            changes=[_shown(change, pages) for change in own[:MOST_CHANGES]],
            more_changes=max(0, len(own) - MOST_CHANGES),
            data=_chart_data(axis, [kernel.name for kernel in axis.kernels], benchmark, own),
        )

    def _axis_page(self, axis: HistoryAxis, viewer: Viewer | None) -> str:
        pages, changes = _pages_of(axis), self._changes[axis.id]
        counts = Counter(name for change in changes for name in {row.benchmark for row in change.benchmarks})
        return self._render(
            "history_index.html.j2",
            index_frame(viewer is not None),
            viewer,
            axis=axis,
            others=self._links,
            note=_note(axis),
            page=self.page_of_axis(axis),
            changes=[_shown(change, pages) for change in changes[:MOST_CHANGES]],
            more_changes=max(0, len(changes) - MOST_CHANGES),
            open_changes=sum(change.is_open for change in changes),
            rows=[_row(benchmark, pages, counts[benchmark.name]) for benchmark in axis.benchmarks],
            kernels=names_of(axis.kernels, KERNELS_OFFERED),
        )

    def compare(self, axis: HistoryAxis, before: int, after: int, viewer: Viewer) -> str:
        """Return the page with two kernels of an axis beside each other."""
        rows, pages = point_ratios(axis, before, after), _pages_of(axis)
        return self._render(
            "history_compare.html.j2",
            index_frame(is_served=True),
            viewer,
            axis=axis,
            index=self.page_of_axis(axis),
            page="compare",
            before=axis.kernels[before].name,
            after=axis.kernels[after].name,
            kernels=names_of(axis.kernels, KERNELS_OFFERED),
            margin=limit(axis.margin),
            beyond=sum(row.is_beyond for row in rows),
            rows=[_point_row(row, pages) for row in rows],
            runs=next(((row.run_before, row.run_after) for row in rows), None),
        )


def _pages_of(axis: HistoryAxis) -> dict[str, str]:
    """Return the names of the pages of an axis's benchmarks."""
    return {benchmark.name: f"{axis.id}-{place}.html" for place, benchmark in enumerate(axis.benchmarks)}


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


def _shown_row(row: ChangedBenchmark, pages: dict[str, str]) -> ShownRow:
    before, after = (f"{number(value)} {row.unit}" for value in (row.before, row.after))
    change = f"{format_signed(row.ratio - 1)} %"
    return ShownRow(row.benchmark, pages[row.benchmark], row.recipe, before, after, change, row.is_worse)


def _point_row(row: PointRatio, pages: dict[str, str]) -> PointRow:
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
def environment() -> Environment:
    environment = page.environment()
    environment.filters |= {
        "number": lambda value: f"{value:,}",
        "counted": format_count,
        "settings": lambda recipe: clean(json.dumps(_without_unset(recipe), ensure_ascii=False)),
    }
    return environment


@cache
def index_frame(is_served: bool) -> PageFrame:
    return PageFrame(_style("style.css", "history.css"), (_script("history.js"),), is_served)


@cache
def _chart_frame(is_served: bool) -> PageFrame:
    colours = f"const COLOURS = {json.dumps(list(VARIANT_COLOURS))};\n"
    chart = Markup(colours + unpacking_script() + read_template("history_chart.js"))
    scripts = (_script("uplot.min.js"), chart)
    return PageFrame(_style("uplot-style.css", "style.css", "history.css"), scripts, is_served)


def _style(*names: str) -> Markup:
    return Markup("\n".join(map(read_template, names)))


def _script(name: str) -> Markup:
    return Markup(read_template(name))
