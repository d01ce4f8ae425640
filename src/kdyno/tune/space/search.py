"""The steps of a search: which recipe is tried next, on which rung, and when the search ends. Pure.

Rungs are those of asynchronous successive halving (Li, Jamieson, Rostamizadeh, Gonina, Hardt, Recht and Talwalkar, A
system for massively parallel hyperparameter tuning, MLSys 2020): the best third of the recipes on a rung goes to the
next one, which measures longer. Everything is decided by the trials on record, so that a search that was killed goes
on.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kdyno.runs.experiment.space import RungSpec, SearchConfig
from kdyno.tune.space.outcome import TrialOutcome
from kdyno.tune.space.samplers import Proposer, SearchView, candidates_of
from kdyno.tune.space.space import DRAWS, Point, Space

REDUCTION = 3
"""Of so many recipes on a rung one goes to the next."""
LINK_PART = 0.1
"""The time of a link of objects that exist, as a part of a build, until one was measured."""
SHORTEST = 0.05
"""The least seconds of a trial that costs are compared by."""


@dataclass(frozen=True)
class Step:
    """One trial to carry out."""

    point: Point
    rung: int


@dataclass(frozen=True)
class SearchCosts:
    """Seconds of what a trial takes."""

    build: float
    link: float
    boots: float

    def of(self, space: Space, point: Point, built: Built) -> float:
        """Return the seconds of a trial of a point, with these kernels built."""
        if space.image_of(point) in built.images:
            work = 0.0
        else:
            work = self.link if space.objects_of(point) in built.objects else self.build
        return max(SHORTEST, work + self.boots)


@dataclass(frozen=True)
class Built:
    """What the kernels of earlier trials were built from."""

    images: frozenset[Point]
    objects: frozenset[Point]

    @property
    def builds(self) -> int:
        """The number of kernels that were compiled, the baseline's not included."""
        return len(self.objects) - 1


class SearchState:
    """The trials of a search in its space."""

    def __init__(
        self, space: Space, config: SearchConfig, rungs: Sequence[RungSpec], trials: Iterable[TrialOutcome]
    ) -> None:
        self.space, self.config, self.rungs = space, config, rungs
        self.by_rung: list[dict[Point, TrialOutcome]] = [{} for _ in rungs]
        self.seconds = 0.0
        for trial in trials:
            self.add(trial)

    def add(self, trial: TrialOutcome) -> None:
        """Add a trial, unless its recipe is not of this space: another space may have been searched before."""
        point = self.space.point_of(trial.values)
        if point is None or trial.rung >= len(self.rungs) or not self.space.is_allowed(point):
            return
        self.by_rung[trial.rung][point] = trial
        self.seconds += trial.seconds

    @property
    def tried(self) -> dict[Point, TrialOutcome]:
        """The newest comparable outcome of each recipe: that of the highest rung with the clock and the tests of the
        first one. A recipe that failed on any rung has failed.
        """
        tried: dict[Point, TrialOutcome] = {}
        for rung, trials in zip(self.rungs, self.by_rung, strict=True):
            for point, trial in trials.items():
                if is_comparable(rung, self.rungs[0]) or not trial.is_ok:
                    tried[point] = trial
        return tried

    @property
    def newest(self) -> dict[Point, TrialOutcome]:
        """The outcome of each recipe on the highest rung that it was tried on."""
        newest: dict[Point, TrialOutcome] = {}
        for trials in self.by_rung:
            newest |= trials
        return newest

    def built(self) -> Built:
        """Return what was built. A recipe that a knob or Kconfig refused was not."""
        points = [point for point, trial in self.by_rung[0].items() if trial.failed != "recipe"]
        points.append(self.space.baseline)
        return Built(frozenset(map(self.space.image_of, points)), frozenset(map(self.space.objects_of, points)))

    def costs(self, build_seconds: float, boot_seconds: float) -> SearchCosts:
        """Return the costs by the trials so far; the arguments are guesses until there are any."""
        first = list(self.by_rung[0].items())
        seen = {self.space.objects_of(self.space.baseline)}
        builds, links, boots = list[float](), list[float](), list[float]()
        for point, trial in first:
            objects = self.space.objects_of(point)
            if trial.build_seconds:
                (links if objects in seen else builds).append(trial.build_seconds)
            seen.add(objects)
            if trial.boot_seconds:
                boots.append(trial.boot_seconds)
        build = statistics.median(builds) if builds else build_seconds
        return SearchCosts(
            build=build,
            link=statistics.median(links) if links else LINK_PART * build,
            boots=statistics.median(boots) if boots else boot_seconds,
        )

    @property
    def remaining(self) -> float:
        """The part of the budget that remains: of what is used up first."""
        parts = [len(self.by_rung[0]) / max(1, self.config.recipes - 1)]
        if self.config.builds is not None:
            parts.append(self.built().builds / self.config.builds)
        if self.config.hours is not None:
            parts.append(self.seconds / (3600 * self.config.hours))
        return max(0.0, 1.0 - max(parts))

    def next_step(self, propose: Proposer, costs: SearchCosts, seed: int) -> Step | None:
        """Return the next trial; None if the search has ended."""
        if (promoted := self._promotion()) is not None:
            return promoted
        if self.remaining > 0 and (candidates := self._candidates(seed)):
            built = self.built()
            view = SearchView(
                space=self.space,
                tried=self.tried,
                candidates=candidates,
                cost=lambda point: costs.of(self.space, point, built),
                remaining=self.remaining,
                objectives=self.config.objectives,
                seed=seed,
            )
            return Step(propose(view), 0)
        return self._last_promotion()

    def _candidates(self, seed: int) -> list[Point]:
        tried = self.by_rung[0]
        candidates = candidates_of(self.space, tried, random.Random(f"kdyno candidates {seed} {len(tried)}"), DRAWS)
        if self.config.builds is not None and self.built().builds >= self.config.builds:
            objects = self.built().objects
            return [point for point in candidates if self.space.objects_of(point) in objects]
        return candidates

    def _promotion(self) -> Step | None:
        """Return a recipe that is among the best third of its rung, and was not on the next one."""
        for rung in range(len(self.rungs) - 2, -1, -1):
            ranked = self._ranked(rung)
            for point in ranked[: len(ranked) // REDUCTION]:
                if point not in self.by_rung[rung + 1] and self._gain(rung, point) > 0:
                    return Step(point, rung + 1)
        return None

    def _last_promotion(self) -> Step | None:
        """Return the best recipe of a rung that was not on the next one, if none of the few there is better than the
        baseline.
        """
        for rung in range(len(self.rungs) - 2, -1, -1):
            better = [point for point in self._ranked(rung) if self._gain(rung, point) > 0]
            above = self._ranked(rung + 1)
            if not better or len(above) >= REDUCTION or any(self._gain(rung + 1, point) > 0 for point in above):
                continue
            left = [point for point in better if point not in self.by_rung[rung + 1]]
            if left:
                return Step(left[0], rung + 1)
        return None

    def _ranked(self, rung: int) -> list[Point]:
        """Return the recipes that were measured on a rung, the best first."""
        return sorted(
            (point for point, trial in self.by_rung[rung].items() if trial.is_ok),
            key=lambda point: -self._gain(rung, point),
        )

    def _gain(self, rung: int, point: Point) -> float:
        return self.by_rung[rung][point].measured[self.config.objectives[0]].value

    def best(self) -> Step | None:
        """Return the best recipe of the highest rung that has any better than the baseline; None if none has.

        A recipe counts as it was measured on its highest rung, and only by the clock and the tests of the last rung.
        """
        newest = self.newest
        for rung in range(len(self.rungs) - 1, -1, -1):
            if not is_comparable(self.rungs[rung], self.rungs[-1]):
                continue
            ranked = [point for point in self._ranked(rung) if newest[point].rung == rung]
            if ranked and self._gain(rung, ranked[0]) > 0:
                return Step(ranked[0], rung)
        return None


def is_comparable(rung: RungSpec, other: RungSpec) -> bool:
    """Return whether two rungs measure by one clock and the same tests, so that their gains can be compared."""
    return (rung.lane, rung.tests) == (other.lane, other.tests)


def pareto_front(values: Mapping[Point, Sequence[float]]) -> list[Point]:
    """Return the points that no other beats in all objectives; more is better."""

    def is_beaten(own: Sequence[float]) -> bool:
        return any(
            all(a >= b for a, b in zip(other, own, strict=True)) and any(a > b for a, b in zip(other, own, strict=True))
            for other in values.values()
        )

    return [point for point, own in values.items() if not is_beaten(own)]
