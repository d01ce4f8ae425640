"""The report as text. Everything shown is plain text to rich: markup in a name or a console is printed unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from kdyno.base.terminal import STYLES, print_whole
from kdyno.base.text import clean, format_count, format_list
from kdyno.judge.verdicts.model import FileReport, Report, RunReport
from kdyno.judge.verdicts.rows import VerdictRow, judged_of_variant, scope_mark, table_rows
from kdyno.report import view
from kdyno.report.bar import bar, heading
from kdyno.report.layout import BETWEEN, Column, TableLayout, lay_out, wrap_text
from kdyno.report.notes import sentence_lines
from kdyno.report.sections import section_lines
from kdyno.report.sections.base import Line
from kdyno.report.summary import summary_lines
from kdyno.report.view import Axis, SideNames

JUSTIFIED: Mapping[Column, JustifyMethod] = {
    **dict.fromkeys(("baseline", "variant", "effect", "sees"), "right"),
    **dict.fromkeys(("benchmark", "bar", "verdict"), "left"),
}
NAMES_OF_COLUMNS: Mapping[Column, str] = {"bar": "bars"}
"""The names of columns without a title."""


def render(report: Report, console: Console) -> None:
    """Print a report: the summary, a table for each variant, the notes, and the other sections of such a report."""
    say = _Speaker(console)
    for line in summary_lines(report):
        say.line(line, "bold")
    measured, *trust = view.first_lines(report)
    for line in (clean(measured), *_origin(report)):
        say.line(line)
    if report.notices:
        say.line(f"{format_count(len(report.notices), 'note')} below", "bold yellow")
    tables = {variant: table_rows(report, variant) for variant in report.others}
    rows = [row for own in tables.values() for row in own]
    layout = lay_out(rows, console.width)
    axis = view.axis([row.span for row in rows if row.span], report.margin)
    sides = view.sides(report)
    for variant, own in tables.items():
        say.line("")
        mark = scope_mark(judged_of_variant(report, variant))
        say.line(f"{clean(variant)} against {clean(report.baseline)}{mark}", "bold")
        print_whole(console, _table(own, layout, axis, sides, report.margin), layout.width)
    if rows:
        say.line("")
    for line, style in _notes(report, tables, trust):
        say.line(line, style)
    legend = [*view.legend(report, tables, layout.widths, axis, sides), *_left_out(layout)]
    if legend:
        say.line("; ".join(legend), "dim")
    for text, style in section_lines(report):
        say.line(text, style)


def _notes(report: Report, tables: Mapping[str, Sequence[VerdictRow]], trust: Sequence[str]) -> Iterator[Line]:
    """Yield the notes on all tables, each once, the most serious first."""
    for notice in report.notices:
        yield f"note: {clean(notice)}", "bold yellow"
    for line in sentence_lines(tables, lambda row: row.reason):
        yield line, "yellow"
    for line in sentence_lines(tables, lambda row: row.caution):
        yield line, "dim"
    for line in trust:
        yield clean(line), ""


def _left_out(layout: TableLayout) -> Iterator[str]:
    """Yield which columns the page is too narrow for, and how wide it has to be for all."""
    if layout.left_out:
        names = [NAMES_OF_COLUMNS.get(column, column) for column in layout.left_out]
        yield f"no space for {format_list(names)}: a page of {layout.whole_width} columns has all"


def _origin(report: Report) -> list[str]:
    """Return which run this is, or which files."""
    if isinstance(report, RunReport):
        run = report.run
        layouts = f", {run.layouts} layouts of each" if run.layouts else ""
        blocks = format_count(run.blocks, "block")
        blocks = blocks if run.stopped_at is None else f"{run.stopped_at} of {blocks}"
        variants = f"{format_count(len(run.variants), 'variant')}{layouts}, baseline {clean(report.baseline)}"
        return [f"run {run.id[:12]} {clean(run.name)}: {blocks} of {variants}"]
    if isinstance(report, FileReport):
        columns = ", ".join(f"{role} from {clean(column)}" for role, column in report.columns.items() if role != column)
        return [
            f"{', '.join(map(clean, report.files))}: {clean(report.read_as)}",
            *([f"columns: {columns}"] if columns else []),
        ]
    return []


class _Speaker:
    """Prints lines of plain text in one style, wrapped between words; what is wrapped is indented."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def line(self, text: str, style: str = "") -> None:
        for part in wrap_text(text, self.console.width):
            self.console.print(Text(part, style=style), no_wrap=True, crop=False, overflow="ignore")


def _table(rows: Sequence[VerdictRow], layout: TableLayout, axis: Axis, sides: SideNames, margin: float) -> Table:
    table = Table(box=None, padding=(0, BETWEEN, 0, 0), pad_edge=False, header_style="dim")
    for column, width in layout.widths.items():
        title = heading(axis, sides, width) if column == "bar" else column
        table.add_column(Text(title), width=width, no_wrap=True, justify=JUSTIFIED[column])
    for row in rows:
        styles: dict[Column, str] = {
            "benchmark": "bold" if row.is_mean else "",
            "verdict": STYLES[row.verdict],
            "sees": "dim",
        }
        texts: dict[Column, Text] = {
            column: Text(text, style=styles.get(column, "")) for column, text in layout.cells(row).items()
        }
        if "bar" in layout.widths:
            texts["bar"] = Text(bar(row.span, axis, margin, layout.widths["bar"]), style=STYLES[row.verdict])
        table.add_row(*(texts[column] for column in layout.widths))
    return table
