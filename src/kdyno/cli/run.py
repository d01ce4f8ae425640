"""`kdyno run`"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.base.errors import KdynoError
from kdyno.base.extras import require_extra
from kdyno.base.terminal import reader_may_leave
from kdyno.cli import exit_codes
from kdyno.cli.common import state_of, store_of, talk_of
from kdyno.runs.carrier import Carrier, ThisHost
from kdyno.runs.session import Session

if TYPE_CHECKING:
    from kdyno.base.talk import Talk
    from kdyno.judge.verdicts.model import RunReport
    from kdyno.judge.verdicts.regression import Finding
    from kdyno.runs.boots import Outcome
    from kdyno.runs.experiment.models import Experiment

OF_FINDING: dict[Finding, int] = {
    "regression": exit_codes.REGRESSION,
    "untestable": exit_codes.UNTESTABLE,
    "none": exit_codes.DONE,
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiment", help="experiment file; `-` reads JSON from standard input, as `kdyno show --reproduce` prints it"
    )
    add_run_options(parser)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verbs that run an experiment."""
    parser.add_argument("--again", action="store_true", help="run it again although it is complete")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the report as one HTML file")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--show-build",
        action="store_true",
        help="on a terminal, show the last lines of the output of a build while it runs",
    )
    parser.add_argument(
        "--notify",
        metavar="COMMAND",
        help="at the end, run this program, without a shell, with a summary as JSON on its standard input",
    )
    parser.add_argument(
        "--fleet",
        type=Path,
        metavar="DIR",
        help="boot on the workers of a fleet; DIR is the directory that `kdyno fleet init` made, or a copy of it",
    )
    parser.add_argument(
        exit_codes.OPTION,
        nargs="*",
        metavar="BENCHMARK",
        help="exit with 2 if a variant is worse in one of these benchmarks (default: in any benchmark or KUnit suite), "
        "and with 125 if it doesn't build or never boots. For `git bisect run`",
    )


def act(args: argparse.Namespace) -> int:
    from kdyno.runs.experiment.resolve import read_experiment

    return carry_out(read_experiment(args.experiment), args)


def carry_out(experiment: Experiment, args: argparse.Namespace) -> int:
    """Run an experiment with the options, print its report, and return the exit code."""
    from kdyno.judge.verdicts.regression import find_regression, require_known
    from kdyno.report.notification import read_notifier
    from kdyno.report.output import print_report
    from kdyno.runs.silicon import offer
    from kdyno.understand.judged_run import run_and_judge

    notifier = read_notifier(args.notify)
    benchmarks: list[str] | None = args.fail_on_regression
    if benchmarks:
        require_known(benchmarks, experiment.workload.benchmark_names())
    talk = talk_of(args)
    with store_of(args) as store, _carrier(args.fleet, talk) as carrier:
        session = Session(state_of(args), store, talk, carrier)
        done = run_and_judge(experiment, session, again=args.again, analysed=bool(args.json or args.html))
        report, outcomes, problem = done.report, [done.outcome], None
        if experiment.confirm and not done.outcome.lost:
            from kdyno.understand.confirm import confirm

            try:
                confirmed = confirm(report, experiment, session, again=args.again)
            except KdynoError as error:
                problem = error  # the verdicts are shown first
            else:
                report, outcomes = confirmed.report, [done.outcome, confirmed.outcome]
    with reader_may_leave():  # the exit code stays the same
        print_report(report, as_json=args.json, html=args.html, talk=talk, artefacts=done.artefacts)
    for outcome in outcomes:
        _warn(outcome, talk)
    if note := offer(experiment):
        talk.say(note)
    if any(outcome.lost for outcome in outcomes):
        status = exit_codes.LOST
    elif benchmarks is None:
        status = exit_codes.DONE
    else:
        status = OF_FINDING[find_regression(done.report, benchmarks)]
    if notifier:
        ended = problem.exit_code if problem else status
        _notify(notifier, report, ended if benchmarks is None else exit_codes.bisect_status(ended), outcomes, talk)
    if problem:
        raise problem
    return status


@contextmanager
def _carrier(fleet: Path | None, talk: Talk) -> Iterator[Carrier]:
    """Yield what carries the run out: this host, or a fleet. Without a fleet nothing of Dask is loaded."""
    if fleet is None:
        yield ThisHost()
        return
    require_extra("fleet")
    from kdyno.fleet.carrier import FleetCarrier
    from kdyno.fleet.connection import FleetConnection
    from kdyno.fleet.fleet_file import read_fleet

    with FleetConnection(read_fleet(fleet)) as connection:
        yield FleetCarrier(connection, talk)


def _notify(command: list[str], report: RunReport, status: int, outcomes: Sequence[Outcome], talk: Talk) -> None:
    """Pass the summary on; a program that fails is reported, and changes nothing else."""
    from kdyno.report.notification import notification, notify

    lost = sum(len(outcome.lost) for outcome in outcomes)
    if reason := notify(command, notification(report, status, lost)):
        talk.warn(f"nobody was notified: {reason}")


def _warn(outcome: Outcome, talk: Talk) -> None:
    for variant, reason in outcome.given_up.items():
        talk.warn(f"{variant} was abandoned: all of its boots failed: {reason}")
    for boot, reason in outcome.lost.items():
        talk.warn(f"lost: {boot}: {reason}; run the same command to try it again")
