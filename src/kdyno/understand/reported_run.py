"""A run of the store as reports show it: its verdicts, what a processor made of its gains, where cycles went."""

from __future__ import annotations

from kdyno.judge.verdicts.assemble import assemble
from kdyno.judge.verdicts.model import RunReport
from kdyno.store.artefacts import Artefacts
from kdyno.store.store import Store
from kdyno.understand.confirm import with_confirmation
from kdyno.understand.explain.budgets import with_budgets


def reported_run(store: Store, artefacts: Artefacts, run: str, *, analysed: bool) -> RunReport:
    """Return the report of a run, by its own settings. Raise the store's errors."""
    report = assemble(store, run, artefacts, analysed=analysed)
    return with_budgets(with_confirmation(report, store, artefacts), artefacts)
