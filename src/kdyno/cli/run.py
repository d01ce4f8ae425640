"""`kdyno run`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.base.terminal import reader_may_leave
from kdyno.cli import exit_codes
from kdyno.cli.common import state_of, store_of, talk_of
from kdyno.runs.session import Session

if TYPE_CHECKING:
    from kdyno.judge.verdicts.regression import Finding
    from kdyno.runs.experiment.models import Experiment

OF_FINDING: dict[Finding, int] = {
    "regression": exit_codes.REGRESSION,
    "untestable": exit_codes.UNTESTABLE,
    "none": exit_codes.DONE,
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", help="experiment file; `-` reads one as JSON, as `kdyno show --reproduce` has it")
    add_run_options(parser)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """The options of what carries an experiment out."""
    parser.add_argument("--again", action="store_true", help="carry it out once more although it was done")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as one HTML file, too")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--show-build", action="store_true", help="on a terminal, show the last lines that a build says while it runs"
    )
    parser.add_argument(
        exit_codes.OPTION,
        nargs="*",
        metavar="BENCHMARK",
        help="exit with 2 if a variant is slower, or needs more, in one of these benchmarks; if none is named: in any, "
        "or if it fails a KUnit suite. With 125 if it doesn't build or never boots. For `git bisect run`",
    )


def act(args: argparse.Namespace) -> int:
    from kdyno.runs.experiment.resolve import read_experiment

    return carry_out(read_experiment(args.experiment), args)


def carry_out(experiment: Experiment, args: argparse.Namespace) -> int:
    """Run an experiment as the options say, print its report, and return the exit code."""
    from kdyno.judge.verdicts.assemble import assemble
    from kdyno.judge.verdicts.regression import find_regression, require_known
    from kdyno.report.output import print_report
    from kdyno.runs.run import run_experiment
    from kdyno.store.artefacts import Artefacts
    from kdyno.understand.explain.budgets import with_budgets

    benchmarks: list[str] | None = args.fail_on_regression
    if benchmarks:
        require_known(benchmarks, experiment.workload.benchmark_names())
    state, talk = state_of(args), talk_of(args)
    with store_of(args) as store:
        done = run_experiment(experiment, Session(state, store, talk), again=args.again)
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
        return exit_codes.LOST
    return exit_codes.DONE if benchmarks is None else OF_FINDING[find_regression(report, benchmarks)]
