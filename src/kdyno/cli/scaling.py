"""`kdyno scaling`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.cli.common import number_from, print_json, run_of, state_of, store_of, talk_of
from kdyno.cli.judge import COLUMNS
from kdyno.judge.stats.scaling.levels import LARGEST_N
from kdyno.measure.readers.request import JudgeRequest

if TYPE_CHECKING:
    from kdyno.judge.curves.model import ScalingReport

NOT_HERE = ("mean", "sd")
"""The columns of a file that a curve requires."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("of", metavar="RUN|FILE", help="id of a run or the beginning of it, `latest`, or a CSV file")
    parser.add_argument("--only", metavar="NAME", help="one workload (default: all)")
    parser.add_argument(
        "--work",
        choices=("copies", "shared"),
        help="each process does the whole work, or a share (default: by the name, NAME.pN or NAME.jN, or the column)",
    )
    parser.add_argument(
        "--to",
        type=number_from(1, LARGEST_N),
        metavar="N",
        help="extrapolate up to this n (default: the largest measured)",
    )
    parser.add_argument("--baseline", metavar="NAME", help="compare single processes with this variant")
    columns = parser.add_argument_group("columns of a file (default: guessed from their names, and printed)")
    columns.add_argument("--by", metavar="COL", help="the number of processes")
    columns.add_argument("--value", metavar="COL", help="the value")
    for role, what in COLUMNS.items():
        if role not in NOT_HERE:
            columns.add_argument(f"--{role}", metavar="COL", help=what)
    columns.add_argument("--pool", action="append", default=[], metavar="COL", help="pool the values of this column")
    columns.add_argument("--unit", metavar="U", default="", help="unit of values without a unit")
    better = columns.add_mutually_exclusive_group()
    better.add_argument("--lower", dest="direction", action="store_const", const="lower", help="lower is better")
    better.add_argument("--higher", dest="direction", action="store_const", const="higher", help="higher is better")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", type=Path, metavar="FILE", help="write one self-contained HTML file")
    form.add_argument("--json", action="store_true", help="print values and fits as JSON")


def act(args: argparse.Namespace) -> int:
    report = _file_report(args) if _is_file(args.of) else _run_report(args)
    if args.json:
        print_json(report.model_dump(mode="json"))
        return 0
    from kdyno.base.terminal import console
    from kdyno.report.scaling_terminal import render

    render(report, console())
    if args.html:
        from kdyno.report.scaling_html import write_html

        write_html(report, args.html)
        talk_of(args).say(f"report: {args.html}")
    return 0


def _is_file(named: str) -> bool:
    """Return whether an argument names a file: the names of runs are hexadecimal digits, or `latest`."""
    return named == "-" or not named.isalnum() or Path(named).is_file()


def _file_report(args: argparse.Namespace) -> ScalingReport:
    from kdyno.judge.curves.of_file import scaling_of_file

    request = JudgeRequest(
        baseline=args.baseline,
        columns={role: name for role in COLUMNS if (name := getattr(args, role, None)) is not None},
        pooled=tuple(args.pool),
        values=(args.value,) if args.value else (),
        unit=args.unit,
        direction=args.direction,
    )
    return scaling_of_file(args.of, request, by=args.by, work=args.work, only=args.only, largest=args.to)


def _run_report(args: argparse.Namespace) -> ScalingReport:
    from kdyno.judge.curves.of_run import scaling_of_run
    from kdyno.judge.verdicts.assemble import Rejudge, assemble
    from kdyno.store.artefacts import Artefacts

    with store_of(args, "read") as store:
        run = run_of(args, store, args.of).id
        report = assemble(store, run, Artefacts(state_of(args).artefacts), Rejudge(args.baseline), analysed=False)
    return scaling_of_run(report, work=args.work, only=args.only, largest=args.to)
