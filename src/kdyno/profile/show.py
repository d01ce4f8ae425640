"""A record as tables for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kdyno.base import terminal
from kdyno.base.frozen import Frozen
from kdyno.base.text import clean
from kdyno.measure.guest.pmu_parts import CONTEXTS, Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.calls import CallEdge, calls
from kdyno.profile.coverage import Coverage
from kdyno.profile.flat import FlatRow, flat, totals
from kdyno.profile.select import WORK

ROWS = 25
"""The default number of rows of a table."""
MISSING_SHOWN = 5


class RegionView(Frozen):
    """One region."""

    benchmark: int
    name: str
    iterations: int
    totals: dict[str, dict[str, int]]
    """The count by event by context, over all iterations."""


class ProfileView(Frozen):
    """The output of `kdyno profile show --json`: the content of all tables, and every event."""

    plugin: str
    scope: str
    events: str
    image: str | None
    """The SHA-256 of the vmlinux that ran."""
    family: str | None
    contexts: tuple[str, ...]
    event: str
    """The event by which functions are sorted."""
    regions: tuple[RegionView, ...]
    functions: tuple[FlatRow, ...]
    calls: tuple[CallEdge, ...] | None
    """None unless they were requested."""


def profile_view(
    record: PmuRecord,
    regions: Sequence[Region],
    *,
    event: str,
    contexts: Sequence[str] = WORK,
    with_calls: bool = False,
    top: int | None = None,
) -> ProfileView:
    """Return the record as data; `top` limits the functions and the calls."""
    return ProfileView(
        plugin=record.plugin,
        scope=record.scope,
        events=record.events,
        image=record.image,
        family=record.family,
        contexts=tuple(contexts),
        event=event,
        regions=tuple(
            RegionView(
                benchmark=region.benchmark,
                name=record.benchmark_name(region.benchmark),
                iterations=len(region.iterations),
                totals=totals(record, region),
            )
            for region in regions
        ),
        functions=tuple(flat(record, regions, event=event, contexts=contexts)[:top]),
        calls=tuple(calls(record, regions, contexts)[:top]) if with_calls else None,
    )


def print_tables(
    record: PmuRecord,
    regions: Sequence[Region],
    *,
    event: str,
    contexts: Sequence[str] = WORK,
    with_calls: bool = False,
    top: int | None = None,
) -> None:
    """Print the record: its regions, its flat profile, and its call edges if requested."""
    console, top = terminal.console(), ROWS if top is None else top
    rows = flat(record, regions, event=event, contexts=contexts)  # raises NoSuchEvent before anything is printed
    made_with = f"vmlinux {record.image[:12]}" if record.image else "no vmlinux"
    boots = f", {record.merged:,} boots merged" if record.merged > 1 else ""
    family = f", family {clean(record.family)}" if record.family else ""
    say_line(
        console,
        f"{record.scope} code, events {record.events}{family}, {made_with}, plugin {clean(record.plugin)}{boots}",
    )
    say_line(console, "")
    console.print(_regions(record, regions, event))
    say_line(console, "")
    say_line(console, f"{event} by function, in {' and '.join(contexts)}", "bold")
    names = [event, *(["instructions"] if event != "instructions" else [])]
    table = table_of(("share", "right"), *((name, "right") for name in names), ("function", "left"))
    for row in rows[:top]:
        counts = [f"{row.events[name]:,}" for name in names]
        table.add_row(*map(Text, (f"{row.share:.2%}", *counts, clean(row.name))))
    console.print(table)
    say_left(console, len(rows) - top, "functions")
    if with_calls:
        edges = calls(record, regions, contexts)
        say_line(console, "")
        say_line(console, "calls", "bold")
        table = table_of(("count", "right"), ("kind", "left"), ("caller", "left"), ("callee", "left"))
        for edge in edges[:top]:
            table.add_row(*map(Text, (f"{edge.count:,}", edge.kind, clean(edge.caller), clean(edge.callee))))
        console.print(table)
        say_left(console, len(edges) - top, "edges")


def print_coverage(coverage: Coverage) -> None:
    console = terminal.console()
    say_line(console, f"{coverage.functions:,} functions are in the profile")
    say_line(console, f"{coverage.instructions:.2%} of the executed instructions are in them")
    say_line(console, f"{coverage.ranges_with_lines:.2%} of {coverage.ranges:,} ranges have a line")
    if coverage.missing:
        most = ", ".join(f"{clean(name)} {share:.2%}" for name, share in coverage.missing[:MISSING_SHOWN])
        say_line(console, f"{len(coverage.missing):,} functions are not in it: {most}", "dim")
    for note in coverage.notes:
        say_line(console, f"{coverage.tool}: {clean(note)}", "yellow")


def _regions(record: PmuRecord, regions: Sequence[Region], event: str) -> Table:
    table = table_of(("region", "left"), ("iterations", "right"), *((f"{event}: {name}", "right") for name in CONTEXTS))
    for region in regions:
        sums = totals(record, region)
        counts = [f"{sums[context][event]:,}" for context in CONTEXTS]
        name = clean(record.benchmark_name(region.benchmark))
        table.add_row(*map(Text, (name, f"{len(region.iterations):,}", *counts)))
    return table


def table_of(*columns: tuple[str, Any]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title, justify in columns:
        table.add_column(title, justify=justify, no_wrap=True, overflow="ellipsis")
    return table


def say_left(console: Console, left: int, what: str) -> None:
    if left > 0:
        say_line(console, f"and {left:,} more {what} (--top N)", "dim")


def say_line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style=style))
