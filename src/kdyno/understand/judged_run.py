"""A run with its verdicts: an experiment is carried out, judged, and explained as far as its boots counted events."""

from __future__ import annotations

from dataclasses import dataclass

from kdyno.judge.verdicts.assemble import assemble
from kdyno.judge.verdicts.model import RunReport
from kdyno.runs.boots import Outcome
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.run import run_experiment
from kdyno.runs.session import Session
from kdyno.store.artefacts import Artefacts


@dataclass(frozen=True)
class JudgedExperiment:
    """An experiment that was carried out and judged."""

    report: RunReport
    outcome: Outcome
    """The variants that were abandoned, and the boots that the host lost."""
    artefacts: Artefacts


def run_and_judge(experiment: Experiment, session: Session, *, again: bool, analysed: bool) -> JudgedExperiment:
    """Carry out an experiment, or what is left of it, and judge it; with `again` carry it out once more.

    Only with `analysed` the report has its analysis and the budgets of benchmarks. Raises KdynoError.
    """
    done = run_experiment(experiment, session, again=again)
    artefacts = Artefacts(session.state.artefacts)
    report = assemble(session.store, done.run_id, artefacts, analysed=analysed)
    if analysed:
        from kdyno.understand.explain.budgets import with_budgets

        report = with_budgets(report, artefacts)
    return JudgedExperiment(report, done.outcome, artefacts)
