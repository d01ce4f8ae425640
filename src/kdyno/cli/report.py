"""`kdyno report`"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kdyno.cli.common import add_run, run_id_of, state_of, store_of, talk_of


def configure(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", type=Path, metavar="FILE", help="write one self-contained HTML file")
    form.add_argument("--json", action="store_true", help="print the report as JSON")
    form.add_argument("--csv", action="store_true", help="print every sample as CSV, one a line")
    form.add_argument(
        "--analysis",
        nargs="?",
        const="",
        metavar="BENCHMARK",
        help="print the tables behind the verdicts: of one benchmark, or a whole test, or all",
    )


def act(args: argparse.Namespace) -> int:
    from kdyno.report.data import write_csv
    from kdyno.report.show import print_report
    from kdyno.report.tables import render_analysis
    from kdyno.store.artefacts import Artefacts
    from kdyno.terminal import console
    from kdyno.verdicts.assemble import assemble

    artefacts = Artefacts(state_of(args).artefacts)
    with store_of(args) as store:
        wanted = args.json or args.html or args.analysis is not None
        report = assemble(store, run_id_of(store, args.run), artefacts, analysed=bool(wanted))
    if args.csv:
        write_csv(report, sys.stdout)
    elif args.analysis is not None:
        render_analysis(report, console(), args.analysis or None)
    else:
        print_report(report, as_json=args.json, html=args.html, talk=talk_of(args), artefacts=artefacts)
    return 0
