"""The history of a store as pages: an index for each axis, and a page with a curve for each benchmark on it. They are
static files, or a server's (served/), which have forms, too.

A page loads nothing but other pages beside it when a link is followed. Every text from a store is escaped, and
the policy of a page names its scripts and its style by their hashes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

from jinja2 import Environment
from markupsafe import Markup

from kdyno.base.errors import UserError
from kdyno.base.files import write_whole
from kdyno.base.text import clean, format_count, limit
from kdyno.base.version import __version__
from kdyno.judge.history.divisive import FALSE_ALARMS, FEWEST
from kdyno.judge.history.model import (
    AxisSummary,
    History,
    HistoryAxis,
    HistoryBenchmark,
    HistoryChange,
)
from kdyno.judge.history.points import names_of, point_ratios
from kdyno.report import page
from kdyno.report.figures.style import VARIANT_COLOURS
from kdyno.report.history_rows import benchmark_row, chart_data, point_row, shown_change
from kdyno.report.packing import read_template, source_hash, unpacking_script
from kdyno.store.triage import TriageState

INDEX = "index.html"
MOST_CHANGES = 40
"""Changes that a page has; the newest ones."""
KERNELS_OFFERED = 200
"""Kernels whose names a form of a server completes; the newest ones."""


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
            changes=[shown_change(change, pages) for change in own[:MOST_CHANGES]],
            more_changes=max(0, len(own) - MOST_CHANGES),
            data=chart_data(axis, [kernel.name for kernel in axis.kernels], benchmark, own),
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
            changes=[shown_change(change, pages) for change in changes[:MOST_CHANGES]],
            more_changes=max(0, len(changes) - MOST_CHANGES),
            open_changes=sum(change.is_open for change in changes),
            rows=[benchmark_row(benchmark, pages, counts[benchmark.name]) for benchmark in axis.benchmarks],
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
            rows=[point_row(row, pages) for row in rows],
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
