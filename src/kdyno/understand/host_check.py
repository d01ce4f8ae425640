"""The A/A of a host: one kernel under two names, in an experiment's own workload and machine."""

from __future__ import annotations

from dataclasses import dataclass

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.frozen import digest
from kdyno.base.lanes import LANES
from kdyno.base.text import format_count, format_signed
from kdyno.judge.stats.verdict import DIFFERENT
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.session import Session
from kdyno.understand.judged_run import run_and_judge
from kdyno.understand.selftest.carry_out import NothingMeasured, SelfTestRequest, aa_experiment

ATTEMPTS = 2
"""A host has failed if so many A/As show a difference, one after the other: with an alpha of 5 % one does by chance in
20 sound hosts, and two in 400."""


class ExactLane(UserError):
    message = "`{experiment}` is in the lane `{lane}`, where one kernel has the same samples on every host"
    hint = 'name an experiment with lane = "wall"'


class CheckUnfinished(InfrastructureError):
    message = "the A/A of {host} is unfinished: {count} were lost; the first: {why}"
    hint = "run the same command to repeat them"


@dataclass(frozen=True)
class HostVerdict:
    """What came of the A/A of a host."""

    passed: bool
    detail: str
    """What differed, or over how much nothing did, for people."""


def check_host(experiment: Experiment, host: str, blocks: int, session: Session) -> HostVerdict:
    """Measure and judge the baseline under two names on one host, to which the session's carrier is bound.

    An interrupted check continues where it stopped. Raises ExactLane, CheckUnfinished, NothingMeasured and what a run
    raises.
    """
    if LANES[experiment.machine.lane].is_repeatable:
        raise ExactLane(experiment=experiment.name, lane=experiment.machine.lane)
    test = aa_experiment(experiment, SelfTestRequest("aa", 1, blocks))
    test = test.model_copy(update={"seed": int(digest(host)[:7], 16)})  # hosts that are alike don't share boots
    differences = ""
    for _ in range(ATTEMPTS):
        done = run_and_judge(test, session, again=True, analysed=False)
        if lost := done.outcome.lost:
            raise CheckUnfinished(host=host, count=format_count(len(lost), "boot"), why=next(iter(lost.values())))
        compared = [comparison for comparison in done.report.comparisons if comparison.verdict]
        if not compared:  # also if the kernel never booted
            raise NothingMeasured(run=done.report.run.id)
        different = [comparison for comparison in compared if comparison.verdict in DIFFERENT]
        if not different:
            benchmarks = format_count(len(compared), "benchmark")
            return HostVerdict(True, f"no difference in {benchmarks} of {experiment.name}, {blocks} blocks")
        differences = ", ".join(
            f"{comparison.benchmark} {format_signed(comparison.estimate.ratio - 1)} %"
            for comparison in different
            if comparison.estimate
        )
    return HostVerdict(False, f"one kernel under two names differs in {differences}")
