"""`kdyno history`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.base.terminal import line
from kdyno.base.text import format_count, format_list, format_signed
from kdyno.cli.common import number_from, print_json, store_of, talk_of

if TYPE_CHECKING:
    from kdyno.judge.history.model import HistoryChange, HistoryReport

SHOWN = 20
NAMED = 3
"""Benchmarks that a line of the table names."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--html", type=Path, metavar="DIR", help="write static pages with the curves of all benchmarks")
    parser.add_argument(
        "--newest",
        type=number_from(1),
        default=SHOWN,
        metavar="N",
        help="changes that the table has (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print all changes as JSON")


def act(args: argparse.Namespace) -> int:
    from kdyno.judge.history.changes import history

    with store_of(args, "read") as store:
        rows = store.series()
    done = history(rows)
    if args.html:
        from kdyno.report.history_html import write_pages

        pages = write_pages(done, args.html)
        talk_of(args).say(f"{format_count(pages, 'page')}: {args.html / 'index.html'}")
    if args.json:
        print_json(done.report.model_dump(mode="json"))
    elif not args.html:
        _print(done.report, args.newest)
    return 0


def _print(report: HistoryReport, newest: int) -> None:
    kernels = sum(axis.kernels for axis in report.axes)
    axes = "axis" if len(report.axes) == 1 else "axes"
    line(
        f"{format_count(report.runs, 'run')}, {format_count(kernels, 'kernel')} on {len(report.axes):,} {axes}, "
        f"{format_count(len(report.changes), 'change')}"
    )
    if report.without_source:
        line(f"{format_count(report.without_source, 'run')} without a kernel of a known source")
    for change in report.changes[:newest]:
        line()
        for text in _lines(change):
            line(text)
    if len(report.changes) > newest:
        line()
        line(f"{len(report.changes) - newest:,} older: --newest {len(report.changes)}, or --html DIR")


def _lines(change: HistoryChange) -> list[str]:
    named = [f"{one.benchmark} {format_signed(one.ratio - 1)} % ({one.recipe})" for one in change.benchmarks[:NAMED]]
    more = len(change.benchmarks) - len(named)
    return [
        f"{change.before.name} -> {change.after.name}: {change.worse} worse, {change.better} better; {change.title}",
        f"  {format_list(named, NAMED)}{f' and {more} more' if more else ''}",
        *(f"  also differs: {text}" for text in change.also_differs),
        *([f"  bisect:  {change.bisect}"] if change.bisect else []),
        f"  explain: {change.explain}",
    ]
