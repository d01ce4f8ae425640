"""Verdicts during a run for a watching user, by the judge of its end, from time to time between boots."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from kdyno.base.errors import KdynoError
from kdyno.base.talk import Talk
from kdyno.base.text import format_signed
from kdyno.base.watched import Standing
from kdyno.judge.verdicts.assemble import assemble
from kdyno.judge.verdicts.model import Report
from kdyno.judge.verdicts.rows import mean_of
from kdyno.store.artefacts import Artefacts
from kdyno.store.store import Store

EVERY_SECONDS = 30.0
SHARE = 0.02
"""The largest share of a run's time for verdicts during the run."""


def standings(report: Report) -> tuple[Standing, ...]:
    """Return the standing of each variant with a verdict. Pure."""
    means = {name: mean_of(report, name) for name in report.others}
    overall = {
        name: f"{format_signed(mean.estimate.ratio - 1)} %" for name, mean in means.items() if mean and mean.estimate
    }
    verdicts = {
        name: Counter(c.verdict for c in report.comparisons if c.variant == name and c.verdict)
        for name in report.others
    }
    return tuple(
        Standing(name, dict(verdicts[name].most_common()), overall.get(name, ""))
        for name in report.others
        if verdicts[name]
    )


class SoFar:
    """Judges a run between boots. On a machine with one boot at a time no boot of this kdyno is running then.

    It waits so long between two judgements that they take no more than SHARE of the time.
    """

    def __init__(self, talk: Talk, judge: Callable[[], Report]) -> None:
        self._talk, self._judge = talk, judge
        self._due = time.monotonic() + EVERY_SECONDS

    def boot_ended(self) -> None:
        """Judge if the run is watched and the next judgement is due. Without a verdict the standings are empty."""
        begin = time.monotonic()
        if not self._talk.is_watched or begin < self._due:
            return
        try:
            self._talk.on_standings(standings(self._judge()))
        except KdynoError:
            self._talk.on_standings(())
        end = time.monotonic()
        self._due = end + max(EVERY_SECONDS, (end - begin) / SHARE)


def judge_of_run(store: Store, run_id: str, artefacts: Artefacts, talk: Talk) -> SoFar:
    """Return the judge of a run in the store."""
    return SoFar(talk, lambda: assemble(store, run_id, artefacts, analysed=False))
