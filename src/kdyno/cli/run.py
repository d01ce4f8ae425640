"""`kdyno run`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.cli.common import state_of, store_of, talk_of
from kdyno.terminal import reader_may_leave

REGRESSION = 2
LOST = 3


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", help="experiment file; `-` reads one as JSON, as `kdyno show --reproduce` has it")
    parser.add_argument("--again", action="store_true", help="carry it out once more although it was done")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as one HTML file, too")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--fail-on-regression",
        action="store_true",
        help="exit with 2 if a variant is slower, or needs more, in any benchmark, never boots, or fails a KUnit suite",
    )


def act(args: argparse.Namespace) -> int:
    from kdyno.experiment.load import read_experiment
    from kdyno.explain.budgets import with_budgets
    from kdyno.judge.verdict import WORSE
    from kdyno.line.run import run_experiment
    from kdyno.report.output import print_report
    from kdyno.store.artefacts import Artefacts
    from kdyno.verdicts.assemble import assemble

    experiment = read_experiment(args.experiment)
    state, talk = state_of(args), talk_of(args)
    with store_of(args) as store:
        done = run_experiment(experiment, state, store, talk, again=args.again)
        artefacts = Artefacts(state.artefacts)
        report = assemble(store, done.run_id, artefacts, analysed=bool(args.json or args.html))
    if args.json or args.html:
        report = with_budgets(report, artefacts)
    with reader_may_leave():  # the exit code still counts
        print_report(report, as_json=args.json, html=args.html, talk=talk, artefacts=artefacts)
    for variant, reason in done.outcome.given_up.items():
        talk.warn(f"{variant} was given up: its boots failed and none came through: {reason}")
    for boot, reason in done.outcome.lost.items():
        talk.warn(f"lost: {boot}: {reason}; the same command tries it again")
    if done.outcome.lost:
        return LOST
    worse = any(comparison.verdict in WORSE for comparison in report.comparisons)
    failed, ok = ({boot.variant for boot in report.boots if boot.status == status} for status in ("failed", "ok"))
    unsound = any(not check.passed for check in report.checks)
    return REGRESSION if args.fail_on_regression and (worse or failed - ok or unsound) else 0
