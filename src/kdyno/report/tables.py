"""The tables behind the verdicts, as text: `--analysis`."""

from __future__ import annotations

import difflib

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdyno.base.errors import UserError
from kdyno.base.text import clean
from kdyno.judge.verdicts.model import Report
from kdyno.report.grids import Grid, grids, sentences


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
    roomy = sum(_widths(grid)) + 2 * len(grid.columns) <= console.width
    table = Table(box=None, padding=(0, 2 if roomy else 1, 0, 0), pad_edge=False, header_style="dim")
    for place, title in enumerate(grid.columns):
        table.add_column(Text(title), justify="left" if place < grid.words else "right", overflow="fold")
    for row in grid.rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _widths(grid: Grid) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(grid.columns, *grid.rows, strict=True)]
