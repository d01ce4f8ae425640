"""`kdyno report`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.cli.common import add_run, fraction, run_of, state_of, store_of, talk_of


def configure(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", type=Path, metavar="FILE", help="write one self-contained HTML file")
    form.add_argument("--json", action="store_true", help="print the report as JSON")
    form.add_argument("--csv", action="store_true", help="print every sample as CSV, one per line")
    form.add_argument(
        "--format",
        choices=("junit", "kcidb", "markdown"),
        help="print the verdicts as JUnit XML, as JSON for KCIDB, or as Markdown for a change request or a mail",
    )
    form.add_argument(
        "--analysis",
        nargs="?",
        const="",
        metavar="BENCHMARK",
        help="print the tables behind the verdicts of one benchmark, one test, or all",
    )

    settings = parser.add_argument_group("judge again, without booting (default: the settings of the run)")
    settings.add_argument("--margin", type=fraction, metavar="F", help="effects within this fraction are equivalent")
    settings.add_argument("--alpha", type=fraction, metavar="F", help="error rate")
    settings.add_argument("--correction", choices=("holm", "bh"), help="correction for multiple comparisons")
    settings.add_argument("--baseline", metavar="VARIANT", help="compare with this variant")


def act(args: argparse.Namespace) -> int:
    from kdyno.base.terminal import console, data, data_file
    from kdyno.judge.verdicts.assemble import Rejudge, assemble
    from kdyno.report.data import write_csv
    from kdyno.report.output import print_report
    from kdyno.report.tables import render_analysis
    from kdyno.store.artefacts import Artefacts
    from kdyno.understand.reported_run import reported_run

    artefacts = Artefacts(state_of(args).artefacts)
    by = Rejudge(args.baseline, args.margin, args.alpha, args.correction)
    is_whole = not (args.csv or args.format or args.analysis is not None)
    analysed = bool(args.json or args.html or args.analysis is not None)
    with store_of(args, "read") as store:
        read = reported_run if is_whole else assemble
        report = read(store, run_of(args, store, args.run).id, artefacts, by, analysed=analysed)
    if args.csv:
        write_csv(report, data_file())
    elif args.format:
        from kdyno.report.interchange import FORMATS

        data(FORMATS[args.format](report))
    elif args.analysis is not None:
        render_analysis(report, console(), args.analysis or None)
    else:
        print_report(report, as_json=args.json, html=args.html, talk=talk_of(args), artefacts=artefacts)
    return 0
