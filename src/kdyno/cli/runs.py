"""`kdyno runs`"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.cells import cell_len

from kdyno.base.short_names import shorten_names
from kdyno.base.terminal import NARROWEST_NAME, console, line
from kdyno.cli.common import print_json, store_url_of

WIDTHS = {"RUN": 12, "LANE": 6, "BOOTS": -9, "FAILED": -6, "CREATED": 16, "STATUS": 10}
"""The columns besides the name, and their widths; a negative one is of a column that is aligned to the right."""
DROPPED = ("LANE", "CREATED")
"""Columns that a narrow page lacks, the first one first."""
GAP = 2
USUAL_NAME = 24


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def act(args: argparse.Namespace) -> int:
    from kdyno.store.listing import list_runs

    runs = list_runs(*store_url_of(args, "read"))
    if args.json:
        print_json([asdict(run) | {"created": f"{run.created:%Y-%m-%dT%H:%M:%S.%fZ}"} for run in runs])
        return 0
    if not runs:
        line("no runs yet: `kdyno init` writes an experiment, `kdyno run quickstart.toml` runs it")
        return 0
    page_width = console().width
    dropped = [column for column in DROPPED if _width_without(column) + NARROWEST_NAME > page_width]
    kept = [column for column in WIDTHS if column not in dropped]
    room = page_width - sum(abs(WIDTHS[column]) + GAP for column in kept)
    names = shorten_names([run.name for run in runs], max(NARROWEST_NAME, room))
    longest = max(USUAL_NAME if room >= USUAL_NAME else 0, len("EXPERIMENT"), *map(cell_len, names.values()))
    line(_row({column: column for column in WIDTHS}, "EXPERIMENT", longest, kept))
    for run in runs:
        cells = {
            "RUN": run.id,
            "LANE": run.lane,
            "BOOTS": f"{run.done}/{run.planned}",
            "FAILED": str(run.failed),
            "CREATED": f"{run.created:%Y-%m-%d %H:%M}",
            "STATUS": run.status,
        }
        line(_row(cells, names[run.name], longest, kept))
    return 0


def _width_without(dropped: str) -> int:
    """Return the width of a line without its name, and without the columns that are dropped before this one."""
    before = DROPPED[: DROPPED.index(dropped)]
    return sum(abs(width) + GAP for column, width in WIDTHS.items() if column not in before)


def _row(cells: Mapping[str, str], name: str, longest: int, kept: Sequence[str]) -> str:
    """Return a line of the list; the name comes after the first column."""
    shown = [f"{cells[column]:{'>' if WIDTHS[column] < 0 else '<'}{abs(WIDTHS[column])}}" for column in kept]
    return (" " * GAP).join([shown[0], name + " " * (longest - cell_len(name)), *shown[1:]]).rstrip()
