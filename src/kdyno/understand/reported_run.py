"""A run of the store as reports show it: its verdicts, what a processor made of its gains, where cycles went."""

from __future__ import annotations

from kdyno.judge.verdicts.assemble import OWN_SETTINGS, Rejudge, assemble
from kdyno.judge.verdicts.model import RunReport
from kdyno.store.artefacts import Artefacts
from kdyno.store.store import Store
from kdyno.understand.confirm import with_confirmation
from kdyno.understand.explain.budgets import with_budgets


def reported_run(
    store: Store, run: str, artefacts: Artefacts, by: Rejudge = OWN_SETTINGS, *, analysed: bool
) -> RunReport:
    """Return the report of a run; only with `analysed` it has its analysis and the budgets of benchmarks. Raise the
    store's errors.
    """
    report = with_confirmation(assemble(store, run, artefacts, by, analysed=analysed), store, artefacts, by)
    return with_budgets(report, artefacts) if analysed else report
