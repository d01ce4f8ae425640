"""Carries out a bisection: requests trials and records their outcomes. Killed, it continues."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from kdyno.base.text import cut, format_count
from kdyno.runs.outlook import span
from kdyno.runs.session import Session
from kdyno.tune.bisect.bench import BisectBench, Trialled
from kdyno.tune.bisect.culprit import interval_of
from kdyno.tune.bisect.evidence import Check, Differences, Revert, SameCode, Trial
from kdyno.tune.bisect.forecast import BisectForecast
from kdyno.tune.bisect.model import Bisection
from kdyno.tune.bisect.order import BisectOrder
from kdyno.tune.bisect.record import RecordFile
from kdyno.tune.bisect.result import MOST_REASON, BisectionResult, effect_of, effect_text
from kdyno.tune.bisect.search import Search


def bisect(order: BisectOrder, session: Session, *, again: bool) -> Bisection:
    """Carry out a bisection, or what is left of it; with `again` from the beginning. Raises KdynoError.

    Images and boots are kept: even from the beginning no boot is repeated in the model lane.
    """
    waiting = "another kdyno carries out this bisection: waiting for it"
    with (
        session.state.hold_shared(),
        session.state.lock(f"bisect-{order.id}", on_wait=lambda: session.talk.say(waiting)),
    ):
        file = RecordFile(order.id, order.kernels, session.state)
        if not again:
            file.resume(session.store)
        return BisectionWork(order, session, file).carry_out()


class BisectionWork:
    """One bisection under way."""

    def __init__(self, order: BisectOrder, session: Session, file: RecordFile) -> None:
        self.order, self.session, self.kernels, self.file = order, session, order.kernels, file
        self.bench = BisectBench(
            kernels=order.kernels,
            template=order.experiment(),
            benchmarks=order.benchmarks,
            session=session,
            layouts=order.settings.layouts,
            is_better_sought=order.better,
            code_by_state=file.codes(),
        )
        self.search = Search(file.evidence(), replace(order.settings, layouts=self.bench.most_layouts))
        self.forecast = BisectForecast(self.search)
        self._seconds = self._forecast_seconds = 0.0

    def carry_out(self) -> Bisection:
        """Carry out the trials that are left, and return the result. Raises KdynoError."""
        self._say_ahead()
        while (trial := self.search.next_trial(self.bench.costs())) is not None:
            begun = time.monotonic()
            self.session.talk.say(self._announcement(trial))
            trialled = self.bench.carry_out(trial)
            # By what is known of builds and boots now: most of it may be from this trial.
            self._forecast_seconds += self.bench.costs().seconds(trial, self.search.evidence)
            self.file.add(trial, trialled)
            self.search.learn(trial, trialled.outcome)
            self._seconds += time.monotonic() - begun
            self.session.talk.say(f"  {self._shown(trial, trialled)}{self._left()}")
        return BisectionResult(self.order, self.search, self.bench, self.file).model()

    # What is said on the way.

    def _say_ahead(self) -> None:
        talk = self.session.talk
        for note in self.kernels.notes():
            talk.say(f"note: {note}")
        done = len(self.file.record.events)
        if done:
            talk.say(f"bisection {self.order.id} continues: {format_count(done, 'trial')} on record")
            return
        steps = self.kernels.steps
        guess = ", a guess: no such build is on record" if self.bench.times.is_guess else ""
        talk.say(
            f"bisection {self.order.id}: {format_count(steps, 'step')} from {self.kernels.name(0)} to "
            f"{self.kernels.name(steps)}; about {format_count(self.forecast.kernels_ahead(), 'kernel')}, "
            f"{span(self._seconds_left())}{guess}"
        )

    def _seconds_left(self) -> float:
        """Return about how long the rest of the bisection takes, by how long its trials took so far."""
        # Images on record make trials faster than those to come.
        pace = max(1.0, self._seconds / self._forecast_seconds) if self._forecast_seconds else 1.0
        return pace * self.forecast.seconds_left(self.bench.costs())

    def _announcement(self, trial: Trial) -> str:
        if isinstance(trial, Check):
            before, after = self.kernels.name(trial.before), self.kernels.name(trial.after)
            orders = " and link orders" if self.bench.most_layouts else ""
            return f"checking {after} against {before} in new boots{orders}: {format_count(trial.blocks, 'block')}"
        if isinstance(trial, Revert):
            step, bad = self.kernels.name(trial.step), self.kernels.name(self.kernels.steps)
            return f"reverting {step} on top of the bad end, {bad}: {format_count(trial.blocks, 'block')}"
        end = "the bad end, " if trial.state == self.kernels.steps else ""
        return (
            f"measuring {end}kernel {trial.state} of {self.kernels.steps}, {self.kernels.name(trial.state)}: "
            f"{format_count(trial.blocks, 'block')}"
        )

    def _shown(self, trial: Trial, trialled: Trialled) -> str:
        """Return what a trial has shown, in words."""
        outcome = trialled.outcome
        if isinstance(outcome, SameCode):
            return f"it has the code of {self.kernels.name(outcome.state)}: not booted"
        if not isinstance(outcome, Differences):
            return f"skipped: {cut(outcome.reason, MOST_REASON)}"
        effect = effect_text(effect_of(interval_of(outcome), len(outcome.values)))
        if isinstance(trial, Check):
            checked = self.search.judge_check(outcome)
            return f"{effect}: {'not decided yet' if checked == 'undecided' else checked}"
        return effect

    def _left(self) -> str:
        """Return how much is left in words; empty at the end."""
        search = self.search
        if (ends := search.ends()) not in ("worse", "undecided"):
            return ""
        if ends == "worse":
            search.settle()
        seconds = self._seconds_left()
        if not seconds:
            return ""
        remaining = search.smallest_set(search.posterior()) if ends == "worse" and not search.is_explained() else None
        if remaining is None or len(remaining.steps) == 1:
            return f"; {span(seconds)} left"
        kernels = format_count(max(1, math.ceil(self.forecast.trials_left())), "more kernel")
        steps = format_count(len(remaining.steps), "step")
        return f"; the culprit is among {steps}: about {kernels}, {span(seconds)} left"
