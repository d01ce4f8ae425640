"""The tables behind the verdicts, as text: `--analysis`."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdyno.base.errors import UserError
from kdyno.base.short_names import shorten_names
from kdyno.base.terminal import NARROWEST_NAME, print_whole
from kdyno.base.text import clean
from kdyno.judge.verdicts.model import Report
from kdyno.report.grids import Grid, grids, sentences
from kdyno.report.layout import READABLE_NAME


class NotAnalysed(UserError):
    message = "unknown benchmark {name} in {title}"
    hint = "did you mean {near}?"


def render_analysis(report: Report, console: Console, benchmark: str | None = None) -> None:
    """Print the sentences and tables of one benchmark, or of all. Raise NotAnalysed."""
    names = [analysis.benchmark for analysis in report.analyses]
    if benchmark is not None and benchmark not in names:
        near = difflib.get_close_matches(benchmark, names, n=3, cutoff=0) or ["nothing: it holds none"]
        raise NotAnalysed(name=clean(benchmark), title=clean(report.title), near=" or ".join(map(clean, near)))
    for analysis in report.analyses:
        if benchmark in (None, analysis.benchmark):
            console.print()
            console.print(Text(clean(analysis.benchmark), style="bold"))
            for sentence in sentences(report, analysis.benchmark):
                console.print(Text(sentence))
            for grid in grids(report, analysis):
                _print(grid, console)


def _print(grid: Grid, console: Console) -> None:
    console.print()
    if grid.note and not grid.rows:
        console.print(Text(f"{grid.title}: {grid.note}", style="dim"))
        return
    note = f" ({grid.note})" if grid.note else ""
    console.print(Text.assemble((grid.title, "underline"), (note, "dim")))
    for fitted in fit_grid(grid, console.width):
        table = Table(box=None, padding=(0, fitted.gap, 0, 0), pad_edge=False, header_style="dim")
        for place, title in enumerate(fitted.columns):
            table.add_column(
                Text(title), justify="left" if place < fitted.words else "right", min_width=fitted.widths[place]
            )
        for row in fitted.rows:
            table.add_row(*(Text(cell) for cell in row))
        print_whole(console, table, fitted.width)


@dataclass(frozen=True)
class FittedGrid:
    """A table in the form in which it fits on a page."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int
    """The number of columns that are text."""
    gap: int
    """The space between two columns."""
    widths: tuple[int, ...]
    """The smallest widths of the columns: no cell is wider, but titles may be."""

    @property
    def width(self) -> int:
        return sum(self.widths) + self.gap * (len(self.widths) - 1)


def fit_grid(grid: Grid, width: int) -> list[FittedGrid]:
    """Return a table as it fits on a page of `width` columns, without a figure that is cut.

    If it is too wide, its titles are wrapped, then the texts of its first column are shortened. If figures alone are
    too wide, the table is turned: its rows become columns, as many beside each other as fit.
    """
    whole = _fitted(grid.columns, grid.rows, grid.words)
    for title_width in (cell_len, _longest_word):
        for gap in (2, 1):
            widths = tuple(max(pair) for pair in zip(whole.widths, map(title_width, grid.columns), strict=True))
            fitted = replace(whole, gap=gap, widths=widths)
            if fitted.width <= width:
                return [fitted]
    first_width = fitted.widths[0] - (fitted.width - width)
    if first_width >= NARROWEST_NAME:
        names = shorten_names([row[0] for row in grid.rows], first_width)
        rows = tuple((names[row[0]], *row[1:]) for row in grid.rows)
        return [replace(fitted, rows=rows, widths=(first_width, *fitted.widths[1:]))]
    return _turn(grid, width)


def _turn(grid: Grid, width: int) -> list[FittedGrid]:
    """Return tables whose columns are the rows of a table."""
    names = shorten_names([row[0] for row in grid.rows], READABLE_NAME)
    parts: list[FittedGrid] = []
    begun: list[tuple[str, ...]] = []
    for row in ((names[row[0]], *row[1:]) for row in grid.rows):
        part = _turned(grid, [*begun, row])
        if begun and part.width > width:
            parts.append(_turned(grid, begun))
            begun = []
        begun.append(row)
    return [*parts, _turned(grid, begun)]


def _turned(grid: Grid, rows: Sequence[tuple[str, ...]]) -> FittedGrid:
    heading, *lines = ((title, *(row[place] for row in rows)) for place, title in enumerate(grid.columns))
    fitted = _fitted(heading, (heading, *lines), 1)
    return replace(fitted, rows=tuple(lines))


def _fitted(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...], words: int) -> FittedGrid:
    widths = tuple(max(map(cell_len, column)) for column in zip(*rows, strict=True))
    return FittedGrid(columns, rows, words, 1, widths)


def _longest_word(title: str) -> int:
    return max(map(cell_len, title.split()), default=0)
