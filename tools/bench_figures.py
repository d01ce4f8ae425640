"""What the tools that print kdyno's own figures share: a figure with its aim, how long a command takes, the table."""

from __future__ import annotations

from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    figure: str
    measured: str
    n: int
    aim: str = ""
    met: bool | None = None


def print_table(rows: list[Row], title: str = "figure") -> None:
    console = Console()
    if not console.is_terminal:
        console.width = 120
    table = Table(box=box.SIMPLE if console.is_terminal else None, pad_edge=False)
    for heading in (title, "measured", "aim", "", "n"):
        table.add_column(heading, justify="left" if heading in (title, "") else "right")
    for row in rows:
        met = "" if row.met is None else "[green]met[/]" if row.met else "[red]not met[/]"
        table.add_row(row.figure, row.measured, row.aim, met, str(row.n))
    console.print(table)
