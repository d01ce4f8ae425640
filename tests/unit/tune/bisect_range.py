"""A synthetic range of kernels for tests of the bisection: planted changes, lucky images, noise, and broken states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kdyno.tune.bisect.choice import TrialCosts
from kdyno.tune.bisect.evidence import BisectEvidence, Check, Differences, Outcome, Revert, SameCode, Trial, Untestable
from kdyno.tune.bisect.search import Search
from kdyno.tune.bisect.settings import SearchSettings

STEPS = 64
"""The steps of a planted range."""


@dataclass
class SyntheticRange:
    """Kernels 0 to `steps`, of which some steps change the benchmark; measures what a search requests."""

    steps: int
    changes: Mapping[int, float]
    """By step, what it adds to the logarithm of the value."""
    noise: float = 0.0
    """Standard deviation of one block's difference."""
    luck: float = 0.0
    """Standard deviation of what the layout of one image adds."""
    lucky: Mapping[int, float] = field(default_factory=dict)
    """By state, the luck of its image, where that is planted."""
    broken: frozenset[int] = frozenset()
    same: Mapping[int, int] = field(default_factory=dict)
    """By state, an earlier one with the same code."""
    seed: int = 1
    boots: int = 0
    trials: list[Trial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = np.random.default_rng(self.seed)
        self.lucks = self.chance.normal(0, self.luck, self.steps + 1)
        for state, luck in self.lucky.items():
            self.lucks[state] = luck
        self.drawn: dict[int, list[float]] = {}

    def level(self, state: int) -> float:
        return sum(size for step, size in self.changes.items() if step <= state)

    def measure(self, trial: Trial) -> Outcome:
        self.trials.append(trial)
        if isinstance(trial, Check):
            return self._check(trial)
        if isinstance(trial, Revert):
            return Differences(tuple(-self.changes.get(trial.step, 0.0) for _ in range(trial.blocks)))
        if trial.state in self.broken:
            return Untestable("it doesn't build")
        if trial.state in self.same:
            return SameCode(self.same[trial.state])
        values = self.drawn.setdefault(trial.state, [])
        effect = self.level(trial.state) + self.lucks[trial.state] - self.lucks[0]
        while len(values) < trial.blocks:
            values.append(float(effect + self.chance.normal(0, self.noise)))
            self.boots += 1
        return Differences(tuple(values[: trial.blocks]))

    def _check(self, trial: Check) -> Outcome:
        layouts = 4
        luck = self.chance.normal(0, self.luck, (layouts, 2))
        effect = self.level(trial.after) - self.level(trial.before)
        self.boots += 2 * trial.blocks
        values = [
            float(effect + luck[block % layouts] @ [-1, 1] + self.chance.normal(0, self.noise))
            for block in range(trial.blocks)
        ]
        return Differences(tuple(values), layouts)


def planted(seed: int, size: float, noise: float, luck: float) -> SyntheticRange:
    """Return a range with one change of this size, at any step."""
    step = int(np.random.default_rng([seed, 7]).integers(1, STEPS + 1))
    return SyntheticRange(STEPS, {step: size}, noise=noise, luck=luck, seed=seed)


COSTS = TrialCosts(build=900, block=20)
"""A kernel takes some minutes to build, and a boot some seconds."""


def bisected(kernels: SyntheticRange, **settings: float) -> Search:
    """The search after its last trial."""
    search = Search(BisectEvidence(kernels.steps), SearchSettings(**{"margin": 0.003, "revert": False, **settings}))  # type: ignore[arg-type]
    while (trial := search.next_trial(COSTS)) is not None:
        assert len(kernels.trials) < 500, "the search doesn't end"
        search.learn(trial, kernels.measure(trial))
    return search


def found_steps(search: Search) -> list[tuple[int, ...]]:
    return [culprit.steps for culprit in search.culprits()]
