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
    layouts: int = 0
    """The most link orders of a kernel; 0: one image of each."""
    boots: int = 0
    seconds: float = 0.0
    trials: list[Trial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = np.random.default_rng(self.seed)
        self.lucks = self.chance.normal(0, self.luck, self.steps + 1)
        for state, luck in self.lucky.items():
            self.lucks[state] = luck
        self.drawn: dict[tuple[int, int, int], list[float]] = {}

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
        return self._differences(trial.blocks, trial.orders, 0, trial.state, self.level(trial.state), 0)

    def luck_of(self, state: int, order: int) -> float:
        """Return what the layout of one image adds."""
        if order == 0:
            return float(self.lucks[state])
        return float(np.random.default_rng([self.seed, state, order]).normal(0, self.luck))

    def _check(self, trial: Check) -> Outcome:
        effect = self.level(trial.after) - self.level(trial.before)
        # Without link orders a kernel has the image of the search.
        first = 1000 if trial.orders else 0
        return self._differences(trial.blocks, trial.orders, trial.before, trial.after, effect, first)

    def _differences(self, blocks: int, orders: int, before: int, after: int, effect: float, first: int) -> Differences:
        """Draw the differences of two kernels, or return those that were drawn before; link orders begin at `first`."""
        values: list[float] = []
        for block in range(blocks):
            turn, order = divmod(block, max(1, orders))
            drawn = self.drawn.setdefault((before, after, first + order), [])
            if len(drawn) <= turn:
                luck = self.luck_of(after, first + order) - self.luck_of(before, first + order)
                drawn.append(float(effect + luck + self.chance.normal(0, self.noise)))
                self.boots += 1 if before == 0 and first == 0 else 2
            values.append(drawn[turn])
        return Differences(tuple(values), orders)


def planted(seed: int, size: float, noise: float, luck: float, layouts: int = 0) -> SyntheticRange:
    """Return a range with one change of this size, at any step."""
    step = int(np.random.default_rng([seed, 7]).integers(1, STEPS + 1))
    return SyntheticRange(STEPS, {step: size}, noise=noise, luck=luck, seed=seed, layouts=layouts)


COSTS = TrialCosts(build=900, block=20)
"""A kernel takes some minutes to build, and a boot some seconds."""
UML_COSTS = TrialCosts(build=90, block=2, link=6)
"""Those of the machine `uml`: a link takes seconds, and a boot less than one."""


def bisected(kernels: SyntheticRange, costs: TrialCosts = COSTS, **settings: float) -> Search:
    """The search after its last trial."""
    values = {"margin": 0.003, "revert": False, "layouts": kernels.layouts, **settings}
    search = Search(BisectEvidence(kernels.steps), SearchSettings(**values))  # type: ignore[arg-type]
    while (trial := search.next_trial(costs)) is not None:
        assert len(kernels.trials) < 500, "the search doesn't end"
        kernels.seconds += costs.seconds(trial, search.evidence)
        search.learn(trial, kernels.measure(trial))
    return search


def found_steps(search: Search) -> list[tuple[int, ...]]:
    return [culprit.steps for culprit in search.culprits()]
