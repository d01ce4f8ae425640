"""Confirms the gains of a run on this host's processor: `confirm = "silicon"` of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kdyno.judge.verdicts.assemble import OWN_SETTINGS, Rejudge, assemble
from kdyno.judge.verdicts.confirmation import confirmation
from kdyno.judge.verdicts.model import RunReport
from kdyno.runs.boots import Outcome
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.session import Session
from kdyno.runs.silicon import find_confirmation_of, recorded_experiment
from kdyno.runs.silicon_kernels import build_on_silicon
from kdyno.store.artefacts import Artefacts
from kdyno.store.store import Store
from kdyno.understand.judged_run import run_and_judge

NOT_CONFIRMED = 'confirm = "silicon": no confirmation of these variants is on record; `kdyno run` makes it'
UNKNOWN_REASON = "the reason is not on record; `kdyno plan` prints it"


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


def with_confirmation(report: RunReport, store: Store, artefacts: Artefacts, by: Rejudge = OWN_SETTINGS) -> RunReport:
    """Return the report of a run with the confirmation that is on record, judged `by` the same settings.

    An experiment that asks for a confirmation and has none on record gets a notice. Raises the store's errors.
    """
    experiment = recorded_experiment(report.run)
    run = find_confirmation_of(report.run, store)
    if experiment is None or run is None or by.baseline not in (None, *(variant.name for variant in run.variants)):
        return _with_notice(report, NOT_CONFIRMED) if experiment and experiment.confirm else report
    recorded = recorded_experiment(run)
    reasons = recorded.left_out if recorded else {}
    names = {variant.name for variant in run.variants}
    left_out = {name: reasons.get(name, UNKNOWN_REASON) for name in experiment.variants if name not in names}
    return _beside(report, assemble(store, run.id, artefacts, by, analysed=False), left_out)


def _with_notice(report: RunReport, notice: str) -> RunReport:
    return report.model_copy(update={"notices": (*report.notices, notice)})


def _beside(report: RunReport, silicon: RunReport | None, left_out: Mapping[str, str]) -> RunReport:
    return report.model_copy(update={"confirmation": confirmation(report, silicon, left_out)})
