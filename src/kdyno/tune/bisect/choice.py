"""The choice of the next state to measure: the most information about the culprit for its cost. Pure.

The information is the mutual information of the hypotheses and the measured value, in bits (Lindley, 1956). It is
computed for the expected levels of each hypothesis, by Gauss-Hermite quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np

from kdyno.base.arrays import Values
from kdyno.tune.bisect.evidence import BisectEvidence, Check, Differences, Measure, Revert, Trial
from kdyno.tune.bisect.posterior import Posterior

PARTS = tuple(part / 8 for part in range(1, 8))
"""Where a state is tried in an interval, as parts of the weight of its steps."""
BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128)
"""The numbers of blocks that are considered for a new state."""
BOOTS = (1, 2, 4)
"""The numbers of blocks of each link order that are considered."""
LEAST_CHECK = 4
"""The least blocks of a check."""
GROWTH = (1.5, 2.0, 4.0)
"""The factors by which the blocks of a measured state may grow."""
LEAST_MASS = 0.01
"""Intervals that hold a culprit with a smaller probability are not divided."""
LEAST_SIZE = 1 / 8
"""Nor are those whose expected change is a smaller part of the largest one. In simulated ranges with the luck of single
images a larger limit names more wrong steps: 1/2 in 50 % of them, 1/8 in 40 %, none in 37.5 %."""
LEAST_HYPOTHESIS = 1e-3
LEAST_BITS = 0.01
"""Less information than this is not worth a boot."""
RESOLUTION = 4
"""Levels that differ by less than this part of the noise are taken for one."""
POINTS, POINT_WEIGHTS = np.polynomial.hermite_e.hermegauss(12)


@dataclass(frozen=True)
class TrialCosts:
    """The costs of a trial, in seconds."""

    build: float = 600.0
    """Building the first image of a state, or its objects again for more link orders."""
    block: float = 20.0
    """One block of boots."""
    link: float = 10.0
    """Linking the objects of a state in another order."""
    built: Collection[int] = field(default_factory=frozenset)
    """States whose first image exists, though they weren't measured."""

    def seconds(self, trial: Trial, evidence: BisectEvidence) -> float:
        """Return the cost of a trial after the evidence so far."""
        match trial:
            case Measure(state, blocks, orders):
                most = max((_images(done) for done in evidence.measured.values()), default=0)
                done = evidence.measured.get(state)
                images = self._build(_images(done), orders, is_built=state in self.built)
                good_end = self._build(most, orders, is_built=0 in self.built)
                return images + good_end + _more(done, blocks, orders) * self.block
            case Check(before, after, blocks, orders):
                done = evidence.checks.get((before, after))
                images = 2 * self._build(_images(done), orders, is_built=False) if orders else 0.0
                return images + 2 * _more(done, blocks, orders) * self.block
            case Revert(_, blocks, orders):
                return self._build(0, orders, is_built=False) + 2 * blocks * self.block

    def _build(self, images: int, orders: int, *, is_built: bool) -> float:
        """Return the cost of the images of a state in so many link orders, if it has some already."""
        wanted = max(1, orders)
        if not images and is_built:
            return self.build + (wanted - 1) * self.link if wanted > 1 else 0.0
        return self.build + (wanted - max(1, images)) * self.link if wanted > images else 0.0


def _images(done: Differences | None) -> int:
    return max(1, done.layouts) if done else 0


def _more(done: Differences | None, blocks: int, orders: int) -> int:
    """Return how many blocks are to be booted: all, if they are in other link orders than those before."""
    return blocks - done.blocks if done and done.layouts == orders else blocks


def designs(most_blocks: int, layouts: int) -> list[tuple[int, int]]:
    """Return the numbers of blocks and link orders of a trial that are considered; `layouts` is the most orders."""
    if not layouts:
        return [(blocks, 0) for blocks in BLOCKS if blocks <= most_blocks]
    orders = [number for number in BLOCKS if number < layouts] + [layouts]
    pairs = [(number * boots, number) for number in orders for boots in BOOTS]
    return [(blocks, number) for blocks, number in pairs if blocks <= most_blocks]


def grown(done: Differences, most_blocks: int, layouts: int) -> list[tuple[int, int]]:
    """Return the numbers of blocks and link orders that a measured state may get."""
    if not layouts:
        totals = {math.ceil(done.blocks * factor) for factor in GROWTH}
        return [(total, 0) for total in sorted(totals) if done.blocks < total <= most_blocks]
    return [
        (blocks, orders)
        for blocks, orders in designs(most_blocks, layouts)
        if blocks >= done.blocks and orders >= done.layouts and (blocks, orders) != (done.blocks, done.layouts)
    ]


@dataclass(frozen=True)
class Choice:
    """A trial and the information that is expected of it."""

    trial: Trial
    bits: float
    seconds: float


def choose(
    posterior: Posterior, costs: TrialCosts, most_blocks: int, *, may_build: bool, layouts: int = 0
) -> Choice | None:
    """Return the trial with the most information for its cost, the first of equals; None if no trial is worth a boot.

    `may_build` allows states without an image. No state gets more than `most_blocks`. `layouts` is the most link orders
    of a state.
    """
    hypotheses = posterior.likely(LEAST_HYPOTHESIS)
    choices = [
        *_new_states(posterior, hypotheses, costs, most_blocks, layouts, may_build=may_build),
        *_known_states(posterior, hypotheses, costs, most_blocks, layouts),
        *_checks(posterior, hypotheses, costs, most_blocks, layouts),
    ]
    worth = [choice for choice in choices if choice.bits >= LEAST_BITS]
    return max(worth, key=lambda choice: choice.bits / choice.seconds, default=None)


def suspected(posterior: Posterior) -> list[int]:
    """Return the intervals that are worth a trial: the likely ones among those with the largest changes."""
    likely = posterior.masses >= LEAST_MASS
    sizes = np.where(likely, posterior.sizes, 0.0)
    return [int(interval) for interval in np.flatnonzero(likely & (sizes >= LEAST_SIZE * sizes.max()))]


Hypotheses = list[tuple[float, tuple[int, ...], Values]]


def _new_states(
    posterior: Posterior,
    hypotheses: Hypotheses,
    costs: TrialCosts,
    most_blocks: int,
    layouts: int,
    *,
    may_build: bool,
) -> Iterator[Choice]:
    evidence = posterior.evidence
    # The good end's own luck in each order is known as well as the other states show it.
    good_end = 1 / (1 + len(posterior.states))
    for interval in suspected(posterior):
        for state in candidates(posterior, interval, costs.built):
            is_built = state in costs.built
            if not (is_built or may_build):
                continue
            odds = 1.0 if is_built else buildable_probability(state, evidence.untestable)
            components = _components(posterior, hypotheses, interval, state)
            for blocks, orders in designs(most_blocks, layouts):
                variance = posterior.image_variance(blocks, orders) * (1 + good_end)
                bits = odds * information(*components, math.sqrt(variance))
                trial = Measure(state, blocks, orders)
                yield Choice(trial, bits, costs.seconds(trial, evidence))


def _known_states(
    posterior: Posterior, hypotheses: Hypotheses, costs: TrialCosts, most_blocks: int, layouts: int
) -> Iterator[Choice]:
    for place, state in enumerate(posterior.states):
        done = posterior.evidence.measured[state]
        levels = np.array([levels[place + 1] for _, _, levels in hypotheses])
        weights = np.array([probability for probability, _, _ in hypotheses])
        for blocks, orders in grown(done, most_blocks, layouts):
            # Further boots of one image don't show more about its luck.
            before, after = (
                posterior.image_variance(done.blocks, done.layouts),
                posterior.image_variance(blocks, orders),
            )
            if (gained := 1 / after - 1 / before) > 0:
                bits = information(levels, weights, 1 / math.sqrt(gained))
                trial = Measure(state, blocks, orders)
                yield Choice(trial, bits, costs.seconds(trial, posterior.evidence))


def _checks(
    posterior: Posterior, hypotheses: Hypotheses, costs: TrialCosts, most_blocks: int, layouts: int
) -> Iterator[Choice]:
    """Yield checks of intervals that no further state divides: other link orders have other luck."""
    for interval in suspected(posterior):
        before, after = posterior.edges[interval], posterior.edges[interval + 1]
        if candidates(posterior, interval, costs.built) or (before, after) in posterior.evidence.uncheckable:
            continue
        sizes = np.array([levels[interval + 1] - levels[interval] for _, _, levels in hypotheses])
        weights = np.array([probability for probability, _, _ in hypotheses])
        checked = posterior.evidence.checks.get((before, after))
        first = [design for design in designs(most_blocks, layouts) if design[0] >= LEAST_CHECK]
        for blocks, orders in grown(checked, most_blocks, layouts) if checked else first:
            precision = 1 / posterior.pair_variance(blocks, orders)
            gained = precision - (1 / posterior.pair_variance(checked.blocks, checked.layouts) if checked else 0.0)
            if gained > 0:
                bits = information(sizes, weights, 1 / math.sqrt(gained))
                trial = Check(before, after, blocks, orders)
                yield Choice(trial, bits, costs.seconds(trial, posterior.evidence))


def candidates(posterior: Posterior, interval: int, built: Collection[int]) -> list[int]:
    """Return untried states inside an interval: at several parts of its weight, and those that are built."""
    first, last = posterior.edges[interval], posterior.edges[interval + 1]
    inside = np.setdiff1d(np.arange(first + 1, last), np.array(sorted(posterior.evidence.tried)))
    before = posterior.weights_up_to(inside) - posterior.weights_up_to(first)
    total = posterior.weight(first, last)
    is_dividing = (before > 0) & (before < total)
    inside, before = inside[is_dividing], before[is_dividing]
    if not len(inside):
        return []
    near = {int(inside[np.argmin(np.abs(before - part * total))]) for part in PARTS}
    return sorted(near | set(inside.tolist()).intersection(built))


def buildable_probability(state: int, untestable: Collection[int]) -> float:
    """Return a guess of the probability that a state can be tested: neighbours often fail for one reason."""
    distance = min((abs(state - other) for other in untestable), default=0)
    return distance / (distance + 1) if untestable else 1.0


def _components(posterior: Posterior, hypotheses: Hypotheses, interval: int, state: int) -> tuple[Values, Values]:
    """Return the levels that a state inside an interval may have, and their probabilities."""
    first, last = posterior.edges[interval], posterior.edges[interval + 1]
    part = posterior.weight(first, state) / posterior.weight(first, last)
    rows = []
    for probability, changes, levels in hypotheses:
        if interval in changes:
            rows += [(levels[interval], probability * (1 - part)), (levels[interval + 1], probability * part)]
        else:
            rows.append((levels[interval], probability))
    return np.array([level for level, _ in rows]), np.array([weight for _, weight in rows])


def information(levels: Values, weights: Values, noise: float) -> float:
    """Return the mutual information in bits of a level, one of `levels`, and its value with normal noise."""
    places, index = np.unique(np.round(levels / noise * RESOLUTION).astype(np.int64), return_inverse=True)
    merged: Values = np.bincount(index, weights=weights) / weights.sum()
    if len(places) == 1:
        return 0.0
    centres = places / RESOLUTION
    offsets = centres[:, None, None] + POINTS[None, :, None] - centres[None, None, :]
    mixture = np.exp(-0.5 * offsets**2) @ merged
    own = np.exp(-0.5 * POINTS**2)
    bits = np.log2(own[None, :] / np.maximum(mixture, 1e-300))
    quadrature = POINT_WEIGHTS / POINT_WEIGHTS.sum()
    return max(0.0, float(merged @ (bits @ quadrature)))
