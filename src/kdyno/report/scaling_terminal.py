"""Scaling curves as text."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdyno.base.text import clean
from kdyno.judge.curves.model import ScalingReport, ScalingSeries
from kdyno.report import scaling_view as view


def render(report: ScalingReport, console: Console) -> None:
    """Print the notices, a table and the fits of each series, and the costs of variants for a single process."""
    for note in view.notes(report):
        console.print(Text(f"note: {note}", style="bold yellow"))
    console.print(Text(f"scaling of {clean(report.title)}", style="bold"))
    console.print(Text(clean(report.measured)))
    for series in report.series:
        console.print()
        console.print(Text(view.name_of(series, report), style="bold"))
        console.print(Text(f"{view.WORDS[series.work]}; throughput in {clean(series.unit)}", style="dim"))
        console.print(_table(series, report))
        for sentence in view.sentences(series):
            console.print(Text(sentence))
    if report.taxes:
        console.print()
    for tax in report.taxes:
        console.print(Text(view.tax(tax, report)))


def _table(series: ScalingSeries, report: ScalingReport) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in view.columns(report):
        table.add_column(title, justify="right", no_wrap=True)
    for row in view.rows(series):
        table.add_row(*map(Text, row))
    return table
