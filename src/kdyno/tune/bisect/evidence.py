"""The trials of a bisection and their outcomes. Pure.

A bisection has states 0 (the good end) to N (the bad end). Step k is the change from state k - 1 to state k.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kdyno.base.arrays import Values
from kdyno.judge.stats.logratio import LogRatio, log_ratio_of_differences, log_ratio_of_layouts


@dataclass(frozen=True)
class Measure:
    """A request to measure a state against the good end."""

    state: int
    blocks: int
    """The number of blocks that the state is to have in all, with those of earlier trials."""
    orders: int = 0
    """The number of link orders, which the blocks take in turn; 0: one image of each state."""


@dataclass(frozen=True)
class Check:
    """A request to measure two states against each other, in boots and link orders that no other trial used."""

    before: int
    after: int
    blocks: int
    orders: int = 0


@dataclass(frozen=True)
class Revert:
    """A request to measure the bad end without one step, against the bad end, in boots of their own."""

    step: int
    blocks: int
    orders: int = 0


Trial = Measure | Check | Revert


@dataclass(frozen=True)
class Differences:
    """The logarithms of ratios of two states, one for each block; positive means worse."""

    values: tuple[float, ...]
    layouts: int = 0
    """The link orders, which the blocks take in turn; 0: one image for each state."""
    requested: int = 0
    """The number of blocks that were requested; 0: as many as there are values. Blocks with a failed boot have none."""
    places: tuple[int, ...] = ()
    """The block of each value; empty: 0, 1, ..."""

    @property
    def blocks(self) -> int:
        """The number of blocks that were carried out."""
        return max(self.requested, len(self.values))

    @property
    def mean(self) -> float:
        """The mean over the link orders, each of which has the same weight."""
        means = self.means_by_order()
        return math.fsum(means.values()) / len(means)

    @property
    def orders(self) -> int:
        """The number of link orders with a value."""
        return len(self.values_by_order())

    def values_by_order(self) -> dict[int, list[float]]:
        """Return the values by the index of their link order."""
        by_order: dict[int, list[float]] = {}
        for place, value in zip(self.places or range(len(self.values)), self.values, strict=True):
            by_order.setdefault(place % max(1, self.layouts), []).append(value)
        return by_order

    def means_by_order(self) -> dict[int, float]:
        """Return the mean by the index of the link order."""
        return {order: math.fsum(values) / len(values) for order, values in self.values_by_order().items()}

    def log_ratio(self) -> LogRatio:
        """Return the mean with its precision; link orders are the replicates if there are several."""
        values = np.array(self.values)
        if self.layouts > 1:
            return log_ratio_of_layouts(values, np.array(self.places or range(len(values))) % self.layouts)
        return log_ratio_of_differences(values)


@dataclass(frozen=True)
class Untestable:
    """A state that doesn't build, doesn't boot, or can't run the benchmark."""

    reason: str


@dataclass(frozen=True)
class SameCode:
    """A state whose code and data are those of another state, which was measured."""

    state: int


Outcome = Differences | Untestable | SameCode


@dataclass
class BisectEvidence:
    """Everything that the trials of one bisection have shown."""

    steps: int
    """The number of steps, N; the bad end is state N."""
    measured: dict[int, Differences] = field(default_factory=dict)
    """By state; state 0 is never in it, since the others are measured against it."""
    untestable: dict[int, str] = field(default_factory=dict)
    """The reason by state."""
    same: dict[int, int] = field(default_factory=dict)
    """By state that was not booted, the measured state with the same code."""
    checks: dict[tuple[int, int], Differences] = field(default_factory=dict)
    """By the states before and after."""
    uncheckable: dict[tuple[int, int], str] = field(default_factory=dict)
    """The reason by the states before and after of a check that failed: in another link order one doesn't build, or
    doesn't boot."""

    reverts: dict[int, Differences | Untestable] = field(default_factory=dict)
    """By step, the bad end without it against the bad end."""

    def learn(self, trial: Trial, outcome: Outcome) -> None:
        """Add the outcome of a trial."""
        if isinstance(trial, Revert):
            assert not isinstance(outcome, SameCode), "a revert is measured"
            self.reverts[trial.step] = outcome
        elif isinstance(trial, Check):
            if isinstance(outcome, Differences):
                self.checks[trial.before, trial.after] = outcome
            else:
                assert isinstance(outcome, Untestable), "a check measures two images"
                self.uncheckable[trial.before, trial.after] = outcome.reason
        elif isinstance(outcome, Differences):
            self.measured[trial.state] = outcome
        elif isinstance(outcome, SameCode):
            self.same[trial.state] = outcome.state
        else:
            self.untestable[trial.state] = outcome.reason

    @property
    def tried(self) -> set[int]:
        """The states that were built, or that can't be built."""
        return {0, *self.measured, *self.untestable, *self.same}

    def weights(self) -> Values:
        """Return the prior weight of each step, shape (N,); a step between two states with the same code has none."""
        weights = np.ones(self.steps)
        for state, other in self.same.items():
            first, last = sorted((state, other))
            weights[first:last] = 0.0
        return weights


def spread(measured: Mapping[int, Differences]) -> tuple[float, int]:
    """Return the variance of one block's difference between boots of the same images, pooled, and its degrees of
    freedom.

    If no image was booted twice, nothing separates it from the variance between link orders: half of that is returned,
    with no degrees of freedom.
    """
    within = [values for differences in measured.values() for values in differences.values_by_order().values()]
    if freedom := sum(len(values) - 1 for values in within):
        return sum(map(squares, within)) / freedom, freedom
    between = [list(differences.means_by_order().values()) for differences in measured.values()]
    orders = sum(len(means) - 1 for means in between)
    return (sum(map(squares, between)) / orders / 2 if orders else 0.0), 0


def luck_variance(measured: Mapping[int, Differences], noise: float) -> float | None:
    """Return the variance of the luck of one image, pooled over the states, by the variance of a block's noise; None if
    no state has several link orders.
    """
    freedom, total = 0, 0.0
    for differences in measured.values():
        means = list(differences.means_by_order().values())
        freedom += len(means) - 1
        total += squares(means) - (len(means) - 1) * noise * len(means) / len(differences.values)
    # A difference has the luck of two images.
    return max(0.0, total / freedom / 2) if freedom else None


def squares(values: Sequence[float]) -> float:
    """Return the sum of squares about the mean."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)
