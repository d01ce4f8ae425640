"""`kdyno judge`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.cli.common import fraction, talk_of
from kdyno.measure.readers.formats.registry import BY_NAME, Reader
from kdyno.measure.readers.request import JudgeRequest

COLUMNS = {
    "variant": "the variant",
    "benchmark": "the benchmark; several columns, a,b, form one name",
    "block": "the block: values of one block were measured together, and are compared",
    "boot": "the boot of a value; a boot counts once",
    "layout": "the link order, or the build",
    "iteration": "the reading within one boot",
    "order": "the order of measurement: a number or a time",
    "mean": "the mean of a summary",
    "sd": "the standard deviation of a summary",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="measurements of another tool; NAME=FILE names its variant"
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--format", choices=tuple(BY_NAME), help="format of the files (default: detected)")
    kind.add_argument("--workload", metavar="NAME", help="the files are output of this workload: its name or file")
    parser.add_argument("--baseline", metavar="NAME", help="compare with this variant (default: detected)")
    columns = parser.add_argument_group("columns of a table (default: guessed from their names, and printed)")
    for role, what in COLUMNS.items():
        columns.add_argument(f"--{role}", metavar="COL", help=what)
    columns.add_argument("--pool", action="append", default=[], metavar="COL", help="pool the values of this column")
    columns.add_argument("--value", metavar="COL[,COL]", help="the value; several columns are several benchmarks")
    columns.add_argument("--wide", action="store_true", help="each column of numbers is a variant")
    columns.add_argument("--decimal", choices=(".", ","), default="", help="the decimal separator (default: detected)")
    columns.add_argument(
        "--n", metavar="COL", help="the number of values in a summary: a column, or one number for all"
    )
    meaning = parser.add_argument_group("meaning")
    meaning.add_argument("--unit", metavar="U", default="", help="unit of values without a unit")
    better = meaning.add_mutually_exclusive_group()
    better.add_argument("--lower", dest="direction", action="store_const", const="lower", help="lower is better")
    better.add_argument("--higher", dest="direction", action="store_const", const="higher", help="higher is better")
    meaning.add_argument(
        "--margin",
        type=fraction,
        default=0.01,
        metavar="F",
        help="effects within this fraction are equivalent (default: 0.01)",
    )
    meaning.add_argument("--alpha", type=fraction, default=0.05, metavar="F", help="error rate (default: 0.05)")
    meaning.add_argument(
        "--correction",
        choices=("holm", "bh"),
        default="holm",
        help="correction for multiple comparisons (default: holm)",
    )
    meaning.add_argument("--claims", action="append", default=[], metavar="FILE", help="published Q and p to check")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", type=Path, metavar="FILE", help="write one self-contained HTML file")
    form.add_argument("--json", action="store_true", help="print the report as JSON")
    form.add_argument(
        "--analysis", action="store_true", help="also print the tables behind the verdicts, of every benchmark"
    )


def act(args: argparse.Namespace) -> int:
    from kdyno.base.terminal import console
    from kdyno.judge.verdicts.of_files import judge_files
    from kdyno.report.output import print_report
    from kdyno.report.tables import render_analysis

    report = judge_files(args.files, _request(args), args.claims, _workload_reader(args.workload))
    print_report(report, as_json=args.json, html=args.html, talk=talk_of(args))
    if args.analysis:
        render_analysis(report, console())
    return 0


def _workload_reader(name: str | None) -> Reader | None:
    if name is None:
        return None
    from kdyno.measure.workload.definition import definition
    from kdyno.measure.workload.printed import reader_of

    return reader_of(definition(name))


def _request(args: argparse.Namespace) -> JudgeRequest:
    return JudgeRequest(
        format=args.format,
        baseline=args.baseline,
        columns={role: name for role in COLUMNS if (name := getattr(args, role)) is not None},
        pooled=tuple(args.pool),
        values=tuple(args.value.split(",")) if args.value else (),
        wide=args.wide,
        decimal=args.decimal,
        n=args.n,
        unit=args.unit,
        direction=args.direction,
        margin=args.margin,
        alpha=args.alpha,
        correction=args.correction,
    )
