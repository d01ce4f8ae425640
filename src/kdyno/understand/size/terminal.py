"""Sizes as text: totals by kind, then sections, then symbols."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdyno.base.text import clean
from kdyno.understand.size.model import KindTotal, SizeReport, SizeRow

NOTHING = "-"
COLOURS = {"+": "red", "-": "green"}
"""The colour of a change by its sign."""


def render(report: SizeReport, console: Console, top: int) -> None:
    """Print a report; at most `top` symbols, and as many sections of two files as changed."""
    is_pair = report.after is not None
    _say(console, f"{'before' if is_pair else 'sizes of'}: {report.before.named}", "bold")
    if report.after:
        _say(console, f"after: {report.after.named}", "bold")
    for note in report.notes:
        _say(console, f"note: {note}", "yellow")
    _print(console, "bytes of symbols", _totals(report.totals, is_pair))
    sections = [row for row in report.sections if row.kind and (row.change if is_pair else row.before)]
    if sections:
        title = "sections that changed" if is_pair else "sections"
        _print(console, f"{title}, padding included", _table("section", sections, is_pair))
    symbols = [row for row in report.symbols if row.change_kind != "same"]
    if symbols:
        title = "symbols that changed" if is_pair else "symbols"
        _print(console, title, _table("symbol", symbols[:top], is_pair))
    if len(symbols) > top:
        _say(console, f"and {len(symbols) - top:,} more (--top N)", "dim")


def _totals(rows: Sequence[KindTotal], is_pair: bool) -> Table:
    if not is_pair:
        table = _columns(("kind", True), ("bytes", False))
        for row in rows:
            table.add_row(row.name, _bytes(row.before))
        return table
    names = ("before", "after", "change", "%", "added", "removed", "grown", "shrunk", "up", "down")
    table = _columns(("kind", True), *((name, False) for name in names))
    for row in rows:
        percent = f"{100 * (row.change or 0) / row.before:+.2f}" if row.before else NOTHING
        counts = (f"{count:,}" for count in (row.added, row.removed, row.grown, row.shrunk, row.up, row.down))
        table.add_row(row.name, _bytes(row.before), _bytes(row.after), _change(row.change), percent, *counts)
    return table


def _table(row_title: str, rows: Sequence[SizeRow], is_pair: bool) -> Table:
    columns = [("before", False), ("after", False), ("change", False)] if is_pair else [("bytes", False)]
    table = _columns((row_title, True), ("kind", True), *columns)
    for row in rows:
        sizes = (_bytes(row.before), _bytes(row.after), _change(row.change)) if is_pair else (_bytes(row.before),)
        table.add_row(Text(clean(row.name)), row.kind or NOTHING, *sizes)
    return table


def _columns(*columns: tuple[str, bool]) -> Table:
    """Return a table with these columns: the name of each, and whether it contains text."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for name, is_text in columns:
        table.add_column(name, justify="left" if is_text else "right", no_wrap=True, overflow="ellipsis")
    return table


def _bytes(size: int | None) -> str:
    return NOTHING if size is None else f"{size:,}"


def _change(change: int | None) -> Text:
    text = "0" if not change else f"{change:+,}"
    return Text(text, style=COLOURS.get(text[0], ""))


def _print(console: Console, title: str, table: Table) -> None:
    _say(console, "")
    _say(console, title, "bold")
    console.print(table)


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(clean(text), style=style), soft_wrap=True)
