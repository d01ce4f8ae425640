"""Coverage as text: totals, then directories."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdyno.base.text import clean, clean_line
from kdyno.report.coverage_page import percent
from kdyno.understand.coverage.diff import CoverageDifference
from kdyno.understand.coverage.model import CoverageReport, Totals
from kdyno.understand.coverage.unused import Unused

DEPTH = 2
"""Parts of a directory's path that the table goes into."""


def print_coverage(report: CoverageReport, console: Console, top: int) -> None:
    """Print the totals, and the directories with most lines executed."""
    say(console, report.subject, "bold")
    for note in report.notes:
        say(console, f"note: {note}", "yellow")
    totals = report.totals
    for name, part, whole in (
        ("lines", totals.executed, totals.lines),
        ("functions", totals.functions_executed, totals.functions),
        ("bytes", totals.bytes_executed, totals.bytes),
    ):
        say(console, f"{name:<10} {part:>10,} of {whole:>10,} executed, {percent(part, whole)}")
    say(console, f"{'':<10} {totals.partly:>10,} lines partly")
    rows = [(directory.path, directory.totals) for directory in report.directories if directory.path.count("/") < DEPTH]
    rows = sorted(rows, key=lambda row: (-row[1].executed, row[0]))
    say(console, "")
    console.print(_table(rows[:top]))
    if len(rows) > top:
        say(console, f"and {len(rows) - top:,} more (--top N)", "dim")


def print_unused(unused: Unused, console: Console, top: int) -> None:
    """Print the code that was never executed: symbols, files and functions, the largest first."""
    say(console, f"never executed: {unused.subject}, and the boot", "bold")
    say(console, f"{unused.bytes_of_functions:,} of {unused.bytes:,} bytes of code are functions that never ran")
    symbols = columns("configuration symbol", "bytes", "files")
    for symbol in unused.symbols[:top]:
        symbols.add_row(Text(clean(symbol.name)), f"{symbol.bytes:,}", f"{len(symbol.files):,}")
    files = columns("file", "bytes", "functions")
    for file in unused.files[:top]:
        files.add_row(Text(clean(file.path)), f"{file.bytes:,}", f"{file.functions:,}")
    functions = columns("function", "bytes", "file")
    for function in unused.functions[:top]:
        functions.add_row(Text(clean(function.name)), f"{function.bytes:,}", Text(clean(function.file)))
    for table, number in (
        (symbols, len(unused.symbols)),
        (files, len(unused.files)),
        (functions, len(unused.functions)),
    ):
        say(console, "")
        console.print(table)
        if number > top:
            say(console, f"and {number - top:,} more (--top N)", "dim")


def print_difference(difference: CoverageDifference, console: Console, top: int) -> None:
    """Print how many lines only one of the two executed, the files with most of them, and functions."""
    one, other = difference.subjects
    say(console, f"A: {one}", "bold")
    say(console, f"B: {other}", "bold")
    say(
        console,
        f"lines: {difference.both:,} in both, {difference.only[0]:,} only in A, {difference.only[1]:,} only in B",
    )
    files = columns("file", "only A", "only B", "both")
    for file in difference.files[:top]:
        files.add_row(Text(clean(file.path)), *(f"{number:,}" for number in (*file.only, file.both)))
    functions = columns("function", "calls in A", "in B", "file")
    for function in difference.functions[:top]:
        calls = (f"{number:,}" for number in function.calls)
        functions.add_row(Text(clean(function.name)), *calls, Text(clean(function.file)))
    for table, number in ((files, len(difference.files)), (functions, len(difference.functions))):
        say(console, "")
        console.print(table)
        if number > top:
            say(console, f"and {number - top:,} more (--top N)", "dim")


def _table(rows: Sequence[tuple[str, Totals]]) -> Table:
    table = columns("directory", "lines", "of", "%", "functions", "of", "bytes", "of")
    for path, totals in rows:
        table.add_row(
            Text(f"{clean(path)}/"),
            *(f"{number:,}" for number in (totals.executed, totals.lines)),
            percent(totals.executed, totals.lines).removesuffix(" %"),
            *(f"{number:,}" for number in (totals.functions_executed, totals.functions)),
            *(f"{number:,}" for number in (totals.bytes_executed, totals.bytes)),
        )
    return table


def columns(text: str, *numbers: str) -> Table:
    """Return an empty table whose first column holds text."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(text, overflow="ellipsis", no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(clean_line(text), style=style), soft_wrap=True)
