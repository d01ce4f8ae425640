"""Samplers: what proposes the next recipe, from the trials so far. Each keeps nothing between proposals. Pure."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.stats import norm

from kdyno.base.arrays import Values
from kdyno.runs.experiment.space import Objective, Sampler
from kdyno.tune.space.effects import Effects
from kdyno.tune.space.outcome import TrialOutcome
from kdyno.tune.space.space import Point, Space

BEST_AROUND = 3
"""The number of best recipes whose neighbours are candidates in a space that is not listed."""


@dataclass(frozen=True)
class SearchView:
    """What a sampler sees."""

    space: Space
    tried: Mapping[Point, TrialOutcome]
    """The newest comparable outcome of each recipe that was tried, in their order."""
    candidates: Sequence[Point]
    """The recipes that may be tried; never empty."""
    cost: Callable[[Point], float]
    """The seconds that a trial of a recipe takes, as far as is known."""
    remaining: float
    """The part of the budget that remains, from 0 to 1."""
    objectives: tuple[Objective, ...] = ("speed",)
    seed: int = 1

    @cached_property
    def rng(self) -> random.Random:
        """Random numbers of this proposal: the same trials give the same proposal."""
        return random.Random(f"kdyno search {self.seed} {len(self.tried)}")

    @cached_property
    def measured(self) -> dict[Point, TrialOutcome]:
        return {point: trial for point, trial in self.tried.items() if trial.is_ok}

    def score(self, trial: TrialOutcome, weights: Mapping[Objective, float]) -> float:
        return math.fsum(
            weight * trial.measured[name].value for name, weight in weights.items() if name in trial.measured
        )

    def weights(self) -> dict[Objective, float]:
        """Return the weights of the objectives for this proposal: random ones, each in its own spread, if there are
        several (Knowles, ParEGO, IEEE Transactions on Evolutionary Computation 2006).
        """
        first, *others = self.objectives
        if not others:
            return {first: 1.0}
        shares = [self.rng.expovariate(1.0) for _ in self.objectives]
        spreads = {}
        for name in self.objectives:
            values = [trial.measured[name].value for trial in self.measured.values() if name in trial.measured]
            spreads[name] = (float(np.std(values)) if len(values) > 1 else 0.0) or 1.0
        return {name: share / sum(shares) / spreads[name] for name, share in zip(self.objectives, shares, strict=True)}


class Proposer(Protocol):
    """Proposes one of the candidates."""

    def __call__(self, view: SearchView) -> Point: ...


def propose_at_random(view: SearchView) -> Point:
    """Return a candidate drawn at random."""
    return view.rng.choice(list(view.candidates))


def propose_one_at_a_time(view: SearchView) -> Point:
    """Return the recipe with one knob changed, knob after knob; then the best choices of all knobs together; then one
    drawn at random.
    """
    candidates = set(view.candidates)
    for point in view.space.neighbours(view.space.baseline):
        if point in candidates:
            return point
    best = list(view.space.baseline)
    gain_by_place: dict[int, float] = {}
    for point, trial in view.measured.items():
        changed = [place for place, choice in enumerate(point) if choice]
        if len(changed) == 1 and (gain := trial.measured["speed"].value) > gain_by_place.get(changed[0], 0.0):
            best[changed[0]], gain_by_place[changed[0]] = point[changed[0]], gain
    together = view.space.canonical(best)
    return together if together in candidates else propose_at_random(view)


def propose_by_effects(view: SearchView) -> Point:
    """Return the candidate with the most expected improvement for its cost, if it works.

    Expected improvement: Jones, Schonlau and Welch, Efficient global optimization, Journal of Global Optimization 1998.
    It is divided by the cost to the power of the remaining part of the budget, so that a search begins with what is
    cheap, and the cost counts less and less (Lee, Perrone, Archambeau and Seeger, Cost-aware Bayesian optimization,
    2020).
    """
    candidates = list(view.candidates)
    view.rng.shuffle(candidates)  # of equals the first wins
    weights = view.weights()
    points = list(view.measured)
    if not points:
        return min(candidates, key=view.cost)
    gains = [view.score(trial, weights) for trial in view.measured.values()]
    errors = [weights.get("speed", 0.0) * trial.measured["speed"].error for trial in view.measured.values()]
    effects = Effects(points, gains, float(np.sqrt(np.mean(np.square(errors)))))
    best = max(0.0, float(effects.predict(points).mean.max()))
    prediction = effects.predict(candidates)
    improvement = _expected_improvement(prediction.mean - best, prediction.deviation)
    blamed = blamed_parts(view.tried)
    works = np.array([works_probability(point, blamed) for point in candidates])
    costs = np.array([view.cost(point) for point in candidates])
    worth = improvement * works / costs ** max(0.0, view.remaining)
    return candidates[int(worth.argmax())]


def _expected_improvement(gain: Values, deviation: Values) -> Values:
    """Return the mean of what a normal gain has above 0."""
    scale = np.maximum(deviation, 1e-12)
    z = gain / scale
    return np.asarray(gain * norm.cdf(z) + scale * norm.pdf(z))


Part = frozenset[tuple[int, int]]
"""A choice, by its place and index, or a pair of choices."""


def blamed_parts(tried: Mapping[Point, TrialOutcome]) -> dict[Part, int]:
    """Return the choices and pairs of choices that failed and never worked, with the number of failures."""
    failures: Counter[Part] = Counter()
    for point, trial in tried.items():
        if not trial.is_ok:
            failures.update(_parts(point))
    if failures:
        for point, trial in tried.items():
            if trial.is_ok:
                for part in _parts(point):
                    failures.pop(part, None)
    return dict(failures)


def works_probability(point: Point, blamed: Mapping[Part, int]) -> float:
    """Return how probable it is that a recipe builds, boots and passes.

    A choice, or a pair of choices, that worked once is not to blame; one that failed n times and never worked is to
    blame with n/(n + 1).
    """
    choices = set(_choices(point))
    return min((1 / (count + 1) for part, count in blamed.items() if part <= choices), default=1.0)


def _choices(point: Point) -> list[tuple[int, int]]:
    return [(place, choice) for place, choice in enumerate(point) if choice]


def _parts(point: Point) -> list[Part]:
    choices = _choices(point)
    pairs = [frozenset(pair) for pair in itertools.combinations(choices, 2)]
    return [*(frozenset([choice]) for choice in choices), *pairs]


PROPOSERS: Mapping[Sampler, Proposer] = {
    "effects": propose_by_effects,
    "random": propose_at_random,
    "one-at-a-time": propose_one_at_a_time,
}


def candidates_of(space: Space, tried: Mapping[Point, TrialOutcome], rng: random.Random, draws: int) -> list[Point]:
    """Return the recipes that may be tried: all others of a listed space; otherwise some that are drawn, and the
    neighbours of the best.
    """
    if space.is_listed:
        points: Sequence[Point] = space.points
    else:
        good = sorted(
            (point for point, trial in tried.items() if trial.is_ok),
            key=lambda point: -tried[point].measured["speed"].value,
        )
        around = [near for point in [space.baseline, *good[:BEST_AROUND]] for near in space.neighbours(point)]
        points = tuple(dict.fromkeys([*around, *space.draw(rng, draws)]))
    return [point for point in points if point not in tried and point != space.baseline]
