"""The posterior: which steps changed the benchmark, given the measured states. Pure.

The effect of state i against the good end in link order l is a_l + the sizes of the changes up to i + the luck of its
image + noise. The levels a_l are near 0: they hold what the good end's own image in this order, and its boots, were
off. Sizes are normal around 0 with the effect of the whole range as standard deviation. The luck of an image is normal;
its standard deviation is unknown, and summed over. Several link orders of one state show it. There are up to two
changes at a time, so that a range with two culprits is not forced on one step. All is linear and normal, so that the
probability of the measurements under each hypothesis is exact (Lindley and Smith, 1972).

Between two neighbours among the measured states no measurement distinguishes the steps. So hypotheses are about the
intervals between measured states, and their number doesn't depend on that of the steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from kdyno.base.arrays import Labels, Values
from kdyno.tune.bisect.evidence import BisectEvidence, spread

SINGLE, PAIR = 0.75, 0.25
"""The prior probabilities of one change and of two."""
NO_MORE = 0.5
"""The prior probability that there is no further change, once one was found."""
LUCK = tuple(2.0**-power for power in range(-1, 8))
"""The standard deviations of the luck of an image that are considered, as parts of the effect of the range."""
MOST_HIDDEN = 0.5
"""The most of them if each state has one link order, which doesn't show luck: a larger one would hide any change."""
LEAST_NOISE = 1e-3
"""The least standard deviation of noise and luck, as a part of the effect: in the model lane both may be 0."""


class Posterior:
    """The probabilities after the evidence so far. The bad end must have been measured."""

    def __init__(self, evidence: BisectEvidence, found: Sequence[tuple[int, int]] = ()) -> None:
        """`found` are the culprits that are known: the states before and after each."""
        self.evidence = evidence
        self.states = sorted(evidence.measured)
        assert self.states and self.states[-1] == evidence.steps, "the bad end is measured first"
        self.edges = [0, *self.states]
        weights = evidence.weights()
        self._found = [place for before, after in found for place in self.intervals_of(before, after)]
        for before, after in found:
            weights[before:after] = 0.0
        self.weights: Values = weights / max(weights.sum(), 1.0)
        self._cumulated = np.concatenate([[0.0], np.cumsum(self.weights)])
        variance, freedom = spread(evidence.measured)
        self.scale = abs(evidence.measured[evidence.steps].mean)
        has_orders = any(measured.orders > 1 for measured in evidence.measured.values())
        self.luck_parts = tuple(part for part in LUCK if has_orders or part <= MOST_HIDDEN)
        floor = LEAST_NOISE * self.scale or LEAST_NOISE
        # The variance is itself estimated: that of the t distribution replaces it.
        inflation = freedom / (freedom - 2) if freedom > 2 else 3.0 if freedom else 1.0
        self.noise = max(math.sqrt(variance * inflation), floor)
        self._solve()

    def interval_of(self, step: int) -> int:
        """Return the index of the interval between measured states that holds a step."""
        return int(np.searchsorted(self.states, step))

    def intervals_of(self, before: int, after: int) -> range:
        """Return the indices of the intervals that hold the steps after `before` up to `after`."""
        return range(self.interval_of(before + 1), self.interval_of(after) + 1)

    def weight(self, first: int, last: int) -> float:
        """Return the prior weight of the steps after state `first` up to state `last`."""
        return float(self._cumulated[last] - self._cumulated[first])

    def weights_up_to(self, states: Labels | int) -> Values:
        """Return the prior weight of all steps up to each state."""
        weights: Values = self._cumulated[states]
        return weights

    @cached_property
    def interval_weights(self) -> Values:
        return np.diff(self._cumulated[self.edges])

    def _hypotheses(self) -> tuple[Labels, Values]:
        """Return intervals with a change, shape (hypotheses, 2), -1 for none, and the prior probability of each."""
        weights = self.interval_weights
        places = [int(place) for place in np.flatnonzero(weights > 0)]
        # Two changes in one interval look like one.
        single = [((place, -1), float(SINGLE * weights[place] + PAIR * weights[place] ** 2)) for place in places]
        pairs = [
            ((first, second), float(PAIR * 2 * weights[first] * weights[second]))
            for index, first in enumerate(places)
            for second in places[index + 1 :]
        ]
        rows = [*single, *pairs]
        if self._found or not rows:
            rows = [*((row, prior * (1 - NO_MORE)) for row, prior in rows), ((-1, -1), NO_MORE)]
        return np.array([row for row, _ in rows], np.int64), np.array([prior for _, prior in rows])

    def _solve(self) -> None:
        changes, priors = self._hypotheses()
        known = np.array([self._found] * len(changes), np.int64).reshape(len(changes), len(self._found))
        columns = np.concatenate([known, changes], axis=1)
        images = self._images()
        logs, coefficients = [], []
        for part in self.luck_parts:
            luck = max(part, LEAST_NOISE) * self.scale or LEAST_NOISE
            log, solution = self._likelihood(columns, *images, luck)
            logs.append(log)
            coefficients.append(solution)
        joint = np.log(priors)[None, :] + np.array(logs)
        joint = np.exp(joint - joint.max())
        joint /= joint.sum()
        self.probabilities: Values = joint.sum(axis=0)
        share = joint / np.maximum(self.probabilities, 1e-300)
        self._columns = columns
        self._coefficients = np.einsum("lh,lhc->hc", share, np.array(coefficients))
        self.luck = float(joint.sum(axis=1) @ (np.array(self.luck_parts) * self.scale))

    def _images(self) -> tuple[Values, Values]:
        """Return the number of blocks and the mean of each link order of each state, shape (orders, states)."""
        by_state = [self.evidence.measured[state].values_by_order() for state in self.states]
        row_by_order = {order: row for row, order in enumerate(sorted(set().union(*by_state)))}
        shape = len(row_by_order), len(self.states)
        blocks, means = np.zeros(shape), np.zeros(shape)
        for place, by_order in enumerate(by_state):
            for order, values in by_order.items():
                row = row_by_order[order]
                blocks[row, place], means[row, place] = len(values), math.fsum(values) / len(values)
        return blocks, means

    def _likelihood(self, columns: Labels, blocks: Values, means: Values, luck: float) -> tuple[Values, Values]:
        """Return the log-likelihood of each hypothesis, and the expected mean level of the good end and sizes of its
        changes.

        Column c of a hypothesis adds to all measured states from index `columns[h, c]` on; -1 is absent. The sums over
        states from an index on give all that the normal equations need, of which the levels are eliminated.
        """
        is_measured = blocks > 0
        variances = luck**2 + self.noise**2 / np.maximum(blocks, 1)
        precisions = is_measured / variances
        levels = luck**2 + self.noise**2 / np.maximum(blocks.max(axis=1), 1)
        tail, tail_means = (_sums_from(values) for values in (precisions, precisions * means))
        eliminated = tail[:, 0] + 1 / levels
        absent = columns == -1
        starts = np.maximum(columns, 0)
        later = np.maximum(starts[:, :, None], starts[:, None, :])
        shared = (tail / eliminated[:, None]).T @ tail
        matrix = tail.sum(axis=0)[later] - shared[starts[:, :, None], starts[:, None, :]]
        matrix[absent[:, :, None] | absent[:, None, :]] = 0.0
        totals = tail_means.sum(axis=0) - (tail_means[:, 0] / eliminated) @ tail
        right = np.where(absent, 0.0, totals[starts])
        squares = float((precisions * means**2).sum() - (tail_means[:, 0] ** 2 / eliminated).sum())
        log_variances = float(np.log(variances[is_measured]).sum() + np.log(eliminated * levels).sum())
        for (before, after), differences in self.evidence.checks.items():
            intervals = self.intervals_of(before, after)
            effect, variance = differences.mean, self._check_variance(before, after, luck)
            has = (columns >= intervals.start) & (columns < intervals.stop)
            matrix += (has[:, :, None] & has[:, None, :]) / variance
            right += has * (effect / variance)
            squares += effect**2 / variance
            log_variances += math.log(variance)
        size = columns.shape[1]
        prior = (self.scale or 1.0) ** 2
        matrix[:, np.arange(size), np.arange(size)] += 1 / prior
        solution = np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
        determinant = np.linalg.slogdet(matrix)[1] + size * math.log(prior)
        quadratic = squares - np.einsum("hc,hc->h", right, solution)
        moved = np.where(absent[:, :, None], 0.0, tail.T[starts])
        off = (tail_means[:, 0] - np.einsum("hc,hcl->hl", solution, moved)) / eliminated
        level = off[:, is_measured.any(axis=1)].mean(axis=1)
        return -0.5 * (determinant + log_variances + quadratic), np.column_stack([level, solution])

    def _check_variance(self, before: int, after: int, luck: float) -> float:
        """Return the variance of a check: noise of its blocks, and the luck of two images in each link order."""
        differences = self.evidence.checks[before, after]
        return self.noise**2 / len(differences.values) + 2 * luck**2 / differences.orders

    def image_variance(self, blocks: int, orders: int) -> float:
        """Return the variance of a state's mean over blocks and link orders, the luck of the good end not included."""
        return self.noise**2 / blocks + self.luck**2 / max(1, orders)

    def pair_variance(self, blocks: int, orders: int) -> float:
        """Return the variance of the mean difference of two states over blocks and link orders."""
        return self.noise**2 / blocks + 2 * self.luck**2 / max(1, orders)

    @cached_property
    def masses(self) -> Values:
        """The probability that an interval holds a further change for the worse, shape (intervals,)."""
        masses = np.zeros(len(self.states))
        for column in range(len(self._found), self._columns.shape[1]):
            intervals = self._columns[:, column]
            worse = (intervals >= 0) & (self._coefficients[:, column + 1] > 0)
            np.add.at(masses, intervals[worse], self.probabilities[worse])
        return masses

    @cached_property
    def sizes(self) -> Values:
        """The expected size of the change in each interval, if there is one, shape (intervals,)."""
        totals, weights = np.zeros(len(self.states)), np.full(len(self.states), 1e-300)
        for column in range(self._columns.shape[1]):
            intervals = self._columns[:, column]
            there = intervals >= 0
            np.add.at(totals, intervals[there], (self.probabilities * self._coefficients[:, column + 1])[there])
            np.add.at(weights, intervals[there], self.probabilities[there])
        sizes: Values = totals / weights
        return sizes

    @cached_property
    def nothing_more(self) -> float:
        """The probability that there is no further change."""
        changes = self._columns[:, len(self._found) :]
        return float(self.probabilities[(changes == -1).all(axis=1)].sum())

    def step_probabilities(self) -> Values:
        """Return the probability of each step to be a further culprit, shape (N,)."""
        place = np.searchsorted(self.states, np.arange(1, self.evidence.steps + 1))
        weights = self.interval_weights[place]
        parts = np.divide(self.weights, weights, out=np.zeros_like(self.weights), where=weights > 0)
        probabilities: Values = self.masses[place] * parts
        return probabilities

    def likely(self, least: float) -> list[tuple[float, tuple[int, ...], Values]]:
        """Return the hypotheses with at least this probability: it, the intervals with a further change, and the
        expected levels of state 0 and of each measured state.
        """
        rows = []
        for index in np.flatnonzero(self.probabilities >= least):
            levels = np.zeros(len(self.edges))
            levels += self._coefficients[index, 0]
            for column in range(self._columns.shape[1]):
                if (interval := self._columns[index, column]) >= 0:
                    levels[interval + 1 :] += self._coefficients[index, column + 1]
            changes = tuple(int(place) for place in self._columns[index, len(self._found) :] if place >= 0)
            rows.append((float(self.probabilities[index]), changes, levels))
        return rows


def _sums_from(values: Values) -> Values:
    """Return the sums of each row from each index on, shape (rows, columns + 1)."""
    sums = np.cumsum(values[:, ::-1], axis=1)[:, ::-1]
    return np.concatenate([sums, np.zeros((len(values), 1))], axis=1)
