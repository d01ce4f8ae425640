"""`kdyno compare`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kdyno.base.terminal import line
from kdyno.cli.common import add_run, print_json, run_of, state_of, store_of

if TYPE_CHECKING:
    from kdyno.judge.verdicts.model import RunReport


def configure(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("other", nargs="?", metavar="RUN", help="a second run: compare variants of the same name")
    parser.add_argument(
        "--baseline", metavar="VARIANT", help="with one run: compare with this variant instead of the run's baseline"
    )
    parser.add_argument("--json", action="store_true", help="print the reports as a JSON list")


def act(args: argparse.Namespace) -> int:
    from kdyno.report.output import print_tables

    reports = _reports(args)
    if args.json:
        print_json([report.model_dump(mode="json") for report in reports])
        return 0
    for number, report in enumerate(reports):
        if number:
            line()
        print_tables(report)
    return 0


def _reports(args: argparse.Namespace) -> list[RunReport]:
    from kdyno.judge.verdicts.across import compare_runs
    from kdyno.judge.verdicts.assemble import Rejudge, assemble
    from kdyno.store.artefacts import Artefacts
    from kdyno.understand.explain.budgets import with_budgets

    artefacts = Artefacts(state_of(args).artefacts)
    with store_of(args, "read") as store:
        run = run_of(args, store, args.run).id
        if args.other is None:
            reports = [assemble(store, run, artefacts, Rejudge(args.baseline), analysed=args.json)]
        else:
            reports = compare_runs(store, run, run_of(args, store, args.other).id, artefacts, analysed=args.json)
    return [with_budgets(report, artefacts) for report in reports] if args.json else reports
