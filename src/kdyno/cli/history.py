"""`kdyno history`"""

from __future__ import annotations

import argparse
import getpass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from kdyno.base.terminal import line
from kdyno.base.text import format_count, format_list, format_signed
from kdyno.cli.common import number_from, print_json, store_of, talk_of
from kdyno.store.triage import TriageState

if TYPE_CHECKING:
    from kdyno.judge.history.model import History, HistoryChange, HistoryReport

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
    parser.add_argument("--open", action="store_true", help="print only the changes that are open: not triaged yet")
    triage = parser.add_argument_group("say what becomes of a change")
    triage.add_argument(
        "--triage",
        nargs=2,
        metavar=("ID", "STATE"),
        help=f"record the state of the change with this id, or its beginning: {', '.join(get_args(TriageState))}",
    )
    triage.add_argument("--owner", default="", metavar="NAME", help="who takes care of it")
    triage.add_argument("--note", default="", metavar="TEXT", help="a text for the others")


def act(args: argparse.Namespace) -> int:
    if args.triage:
        return _triage(args)
    done = _read(args)
    if args.html:
        from kdyno.report.history_html import write_pages

        pages = write_pages(done, args.html)
        talk_of(args).say(f"{format_count(pages, 'page')}: {args.html / 'index.html'}")
    if args.json:
        print_json(done.report.model_dump(mode="json"))
    elif not args.html:
        _print(done.report, args.newest, only_open=args.open)
    return 0


def _read(args: argparse.Namespace) -> History:
    from kdyno.judge.history.changes import history
    from kdyno.judge.history.triage import with_triage

    with store_of(args, "read") as store:
        rows, entries = store.series(), store.triage()
    return with_triage(history(rows), entries)


def _triage(args: argparse.Namespace) -> int:
    from kdyno.judge.history.triage import change_named, triage_of

    name, state = args.triage
    change = change_named(_read(args), name)
    entry = triage_of(change, state, owner=args.owner, note=args.note, author=getpass.getuser())
    with store_of(args, "change") as store:
        store.add_triage(entry)
    talk_of(args).say(f"{change.id} {change.before.name} -> {change.after.name}: {entry.state}")
    return 0


def _print(report: HistoryReport, newest: int, *, only_open: bool) -> None:
    kernels = sum(axis.kernels for axis in report.axes)
    axes = "axis" if len(report.axes) == 1 else "axes"
    line(
        f"{format_count(report.runs, 'run')}, {format_count(kernels, 'kernel')} on {len(report.axes):,} {axes}, "
        f"{format_count(len(report.changes), 'change')}"
    )
    if report.without_source:
        line(f"{format_count(report.without_source, 'run')} without a kernel of a known source")
    changes = [change for change in report.changes if change.is_open or not only_open]
    for change in changes[:newest]:
        line()
        for text in _lines(change):
            line(text)
    if len(changes) > newest:
        line()
        line(f"{len(changes) - newest:,} older: --newest {len(changes)}, or --html DIR")


def _lines(change: HistoryChange) -> list[str]:
    named = [f"{one.benchmark} {format_signed(one.ratio - 1)} % ({one.recipe})" for one in change.benchmarks[:NAMED]]
    more = len(change.benchmarks) - len(named)
    return [
        f"{change.before.name} -> {change.after.name}: {change.worse} worse, {change.better} better; {change.title}",
        f"  change {change.id}: {_triage_text(change)}",
        f"  {format_list(named, NAMED)}{f' and {more} more' if more else ''}",
        *(f"  also differs: {text}" for text in change.also_differs),
        *([f"  bisect:  {change.bisect}"] if change.bisect else []),
        f"  explain: {change.explain}",
    ]


def _triage_text(change: HistoryChange) -> str:
    entry = change.triage
    if entry is None:
        return "open"
    owner = f", {entry.owner}" if entry.owner else ""
    note = f": {entry.note}" if entry.note else ""
    return f"{entry.state}{owner} ({entry.author}, {entry.written:%Y-%m-%d}){note}"
