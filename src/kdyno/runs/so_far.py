"""Verdicts while a run goes on, for who watches it: by the judge of its end, now and then, between boots."""

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
"""Of a run's time, at most, that goes into judging on the way."""


def standings(report: Report) -> tuple[Standing, ...]:
    """How the variants stand that anything is known of. Pure."""
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
    """Judges a run when a boot has ended, no boot of this kdyno being under way on a machine that boots one at a time.

    It waits between two times for so long that all of them take no more than SHARE of the time.
    """

    def __init__(self, talk: Talk, judge: Callable[[], Report]) -> None:
        self._talk, self._judge = talk, judge
        self._due = time.monotonic() + EVERY_SECONDS

    def boot_ended(self) -> None:
        """Judge if somebody watches and it is time for it. What can't be judged yet is judged at the end."""
        began = time.monotonic()
        if not self._talk.is_watched or began < self._due:
            return
        try:
            self._talk.on_standings(standings(self._judge()))
        except KdynoError:
            self._talk.on_standings(())
        ended = time.monotonic()
        self._due = ended + max(EVERY_SECONDS, (ended - began) / SHARE)


def of_run(store: Store, run_id: str, artefacts: Artefacts, talk: Talk) -> SoFar:
    """The verdicts so far of a run in the store."""
    return SoFar(talk, lambda: assemble(store, run_id, artefacts, analysed=False))
