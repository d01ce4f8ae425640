"""What the tools that print kdyno's own figures share: a figure with its aim, how long a command takes, the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.random import default_rng
from rich import box
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest, bootstrap


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    figure: str
    measured: str
    n: int
    aim: str = ""
    met: bool | None = None


def ratio_interval(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the 95 % interval of the ratio of two means over the same seeds: bootstrapped, BCa."""
    ends = bootstrap(
        (ours, theirs), lambda one, other, axis: one.mean(axis) / other.mean(axis), paired=True, rng=default_rng(1)
    ).confidence_interval
    return float(ends.low), float(ends.high)


def share_text(successes: int, n: int) -> str:
    """Return a share with its 95 % interval (Wilson's): `92 % (81 to 97)`."""
    low, high = binomtest(successes, n).proportion_ci(method="wilson")
    return f"{100 * successes / n:.3g} % ({100 * low:.0f} to {100 * high:.0f})"


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
