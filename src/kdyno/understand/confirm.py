"""Confirms the gains of a run on this host's processor: `confirm = "silicon"` of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kdyno.judge.verdicts.confirmation import confirmation
from kdyno.judge.verdicts.model import RunReport
from kdyno.runs.boots import Outcome
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.session import Session
from kdyno.runs.silicon import build_on_silicon
from kdyno.understand.judged_run import run_and_judge


@dataclass(frozen=True)
class Confirmed:
    """A report with the judgement of this processor, and the outcome of the boots on it."""

    report: RunReport
    outcome: Outcome


def confirm(report: RunReport, experiment: Experiment, session: Session, *, again: bool) -> Confirmed:
    """Carry out the experiment on this processor, as a run of its own, and put both judgements side by side.

    Variants that can't be had there are named with the reason. Raises KdynoError.
    """
    session.talk.say(f"{experiment.name} on this processor")
    plan = build_on_silicon(experiment, session)
    if plan.experiment is None:
        return Confirmed(_beside(report, None, plan.left_out), Outcome())
    done = run_and_judge(plan.experiment, session, again=again, analysed=False)
    return Confirmed(_beside(report, done.report, plan.left_out), done.outcome)


def _beside(report: RunReport, silicon: RunReport | None, left_out: Mapping[str, str]) -> RunReport:
    return report.model_copy(update={"confirmation": confirmation(report, silicon, left_out)})
