"""The report as text. Everything shown is plain text to rich: markup in a name or a console is printed unchanged."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdyno.base.terminal import NARROWEST_NAME, STYLES
from kdyno.base.text import clean
from kdyno.judge.verdicts.model import FileReport, Report, RunReport
from kdyno.judge.verdicts.rows import VerdictRow, group_sentences, judged_of_variant, scope_mark, table_rows
from kdyno.report import view
from kdyno.report.bar import bar, heading
from kdyno.report.sections import section_lines
from kdyno.report.tables import render_analysis
from kdyno.report.view import Axis, SideNames

NARROWEST_BAR, WIDEST_BAR = 9, 41
FEW_BENCHMARKS = 6
"""Benchmarks of a file; so few are printed with all their tables."""


def render(report: Report, console: Console) -> None:
    """Print a report: the notices, a table per variant, and the rest that a report of its kind has."""
    say = _Speaker(console)
    for notice in report.notices:
        say.line(f"note: {clean(notice)}", "bold yellow")
    first, *others = view.first_lines(report)
    say.line(clean(first), "bold")
    for line in others:
        say.line(clean(line))
    for line in _origin(report):
        say.line(line)
    tables = {variant: table_rows(report, variant) for variant in report.others}
    spans = [row.span for rows in tables.values() for row in rows if row.span]
    axis = view.axis(spans, report.margin)
    sides = view.sides(report)
    for variant, rows in tables.items():
        say.line("")
        mark = scope_mark(judged_of_variant(report, variant))
        say.line(f"{clean(variant)} against {clean(report.baseline)}{mark}", "bold")
        console.print(_table(rows, axis, sides, report.margin, console.width))
        for names, reason in group_sentences(rows, lambda row: row.reason):
            say.line(f"{names}: {reason}", "yellow")
        for names, caution in group_sentences(rows, lambda row: row.caution):
            say.line(f"{names}: {caution}", "dim")
    if spans:
        say.line("")
        say.line(view.legend(report, tables, axis, sides), "dim")
    for text, style in section_lines(report):
        say.line(text, style)
    if isinstance(report, FileReport) and len(report.analyses) <= FEW_BENCHMARKS:
        render_analysis(report, console)


def _origin(report: Report) -> list[str]:
    """Return which run this is, or which files."""
    if isinstance(report, RunReport):
        run = report.run
        layouts = f", {run.layouts} layouts of each" if run.layouts else ""
        blocks = f"{run.blocks} blocks" if run.stopped_at is None else f"{run.stopped_at} of {run.blocks} blocks"
        named = f"run {run.id[:12]} {clean(run.name)}"
        return [f"{named}: {blocks} of {len(run.variants)} variants{layouts}, baseline {clean(report.baseline)}"]
    if isinstance(report, FileReport):
        columns = ", ".join(f"{role} from {clean(column)}" for role, column in report.columns.items() if role != column)
        return [
            f"{', '.join(map(clean, report.files))}: {clean(report.read_as)}",
            *([f"columns: {columns}"] if columns else []),
        ]
    return []


class _Speaker:
    """Prints lines of plain text in one style, wrapped between words."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def line(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style=style))


def _table(rows: list[VerdictRow], axis: Axis, sides: SideNames, margin: float, width: int) -> Table:
    """Lay a table out so that it fills `width`: the bar takes the space that the texts leave."""
    values, verdicts = [_value(row) for row in rows], [row.verdict_shown or "none" for row in rows]
    fixed = [
        _widest("baseline", values),
        _widest("variant", [row.variant for row in rows]),
        _widest("effect", [row.effect for row in rows]),
        _widest("verdict", verdicts),
        _widest("sees", [row.sensitivity for row in rows]),
    ]
    remaining = width - sum(fixed) - 6
    if remaining < NARROWEST_NAME + NARROWEST_BAR:  # no room for "(these boots)"
        verdicts = [verdict.replace("(these ", "(") for verdict in verdicts]
        remaining, fixed[3] = remaining + fixed[3] - _widest("verdict", verdicts), _widest("verdict", verdicts)
    name_width = max(NARROWEST_NAME, min(_widest("benchmark", [row.name for row in rows]), remaining - NARROWEST_BAR))
    bar_width = max(NARROWEST_BAR, min(WIDEST_BAR, remaining - name_width))
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("benchmark", width=name_width, no_wrap=True, overflow="ellipsis")
    for title, size in zip(("baseline", "variant", "effect"), fixed, strict=False):
        table.add_column(title, width=size, no_wrap=True, justify="right")
    table.add_column(Text(heading(axis, sides, bar_width)), width=bar_width, no_wrap=True, overflow="crop")
    table.add_column("verdict", width=fixed[3], no_wrap=True)
    table.add_column("sees", width=fixed[4], no_wrap=True, justify="right")
    for row, value, verdict in zip(rows, values, verdicts, strict=True):
        style = STYLES[row.verdict]
        table.add_row(
            Text(row.name, style="bold" if row.is_mean else ""),
            Text(value),
            Text(row.variant),
            Text(row.effect),
            Text(bar(row.span, axis, margin, bar_width), style=style),
            Text(verdict, style=style),
            Text(row.sensitivity, style="dim"),
        )
    return table


def _value(row: VerdictRow) -> str:
    return f"{row.baseline} {row.unit}".strip()


def _widest(title: str, texts: list[str]) -> int:
    return max(len(title), *(cell_len(text) for text in texts))
