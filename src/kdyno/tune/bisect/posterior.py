"""The posterior: which steps changed the benchmark, given the measured states. Pure.

The effect of state i against the good end is a + the sizes of the changes up to i + the luck of its image + noise. The
level a is near 0: it holds what the good end's own image and boots were off. Sizes are normal around 0 with the effect
of the whole range as standard deviation. The luck of an image is normal; its standard deviation is unknown, and summed
over. There are up to two changes at a time, so that a range with two culprits is not forced on one step. All is linear
and normal, so that the probability of the measurements under each hypothesis is exact (Lindley and Smith, 1972).

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
LUCK = tuple(2.0**-power for power in range(1, 8))
"""The standard deviations of the luck of an image that are considered, as parts of the effect of the range."""
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
        floor = LEAST_NOISE * self.scale or LEAST_NOISE
        # The variance is itself estimated: that of the t distribution replaces it.
        inflation = freedom / (freedom - 2) if freedom > 2 else 3.0
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
        known = np.array([[-2, *self._found]] * len(changes), np.int64)
        columns = np.concatenate([known, changes], axis=1)
        means = np.array([self.evidence.measured[state].mean for state in self.states])
        blocks = np.array([len(self.evidence.measured[state].values) for state in self.states])
        logs, coefficients = [], []
        for part in LUCK:
            luck = max(part, LEAST_NOISE) * self.scale or LEAST_NOISE
            variances = luck**2 + self.noise**2 / blocks
            log, solution = self._likelihood(columns, means, variances, luck)
            logs.append(log)
            coefficients.append(solution)
        joint = np.log(priors)[None, :] + np.array(logs)
        joint = np.exp(joint - joint.max())
        joint /= joint.sum()
        self.probabilities: Values = joint.sum(axis=0)
        share = joint / np.maximum(self.probabilities, 1e-300)
        self._columns = columns
        self._coefficients = np.einsum("lh,lhc->hc", share, np.array(coefficients))
        self.luck = float(joint.sum(axis=1) @ (np.array(LUCK) * self.scale))

    def _likelihood(self, columns: Labels, means: Values, variances: Values, luck: float) -> tuple[Values, Values]:
        """Return the log-likelihood of each hypothesis, and the expected level and sizes of its changes.

        Column c of a hypothesis adds to all measured states from index `columns[h, c]` on; -2 is the level a, and -1
        is absent. The sums over states from an index on give all that the normal equations need.
        """
        precisions = 1 / variances
        tail = np.concatenate([np.cumsum(precisions[::-1])[::-1], [0.0]])
        tail_means = np.concatenate([np.cumsum((precisions * means)[::-1])[::-1], [0.0]])
        absent = columns == -1
        starts = np.maximum(columns, 0)
        size = columns.shape[1]
        later = np.maximum(starts[:, :, None], starts[:, None, :])
        matrix = tail[later]
        matrix[absent[:, :, None] | absent[:, None, :]] = 0.0
        right = np.where(absent, 0.0, tail_means[starts])
        squares = float(precisions @ means**2)
        log_variances = float(np.log(variances).sum())
        for (before, after), differences in self.evidence.checks.items():
            intervals = self.intervals_of(before, after)
            effect, variance = differences.mean, self._check_variance(before, after, luck)
            has = (columns >= intervals.start) & (columns < intervals.stop)
            matrix += (has[:, :, None] & has[:, None, :]) / variance
            right += has * (effect / variance)
            squares += effect**2 / variance
            log_variances += math.log(variance)
        prior = np.full(size, (self.scale or 1.0) ** 2)
        prior[0] = luck**2 + self.noise**2 / max(map(len, (d.values for d in self.evidence.measured.values())))
        matrix[:, np.arange(size), np.arange(size)] += 1 / prior
        solution = np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
        determinant = np.linalg.slogdet(matrix)[1] + np.log(prior).sum()
        quadratic = squares - np.einsum("hc,hc->h", right, solution)
        return -0.5 * (determinant + log_variances + quadratic), solution

    def _check_variance(self, before: int, after: int, luck: float) -> float:
        """Return the variance of a check: noise of its blocks, and the luck of two images in each link order."""
        differences = self.evidence.checks[before, after]
        return self.noise**2 / len(differences.values) + 2 * luck**2 / max(1, differences.layouts)

    @cached_property
    def masses(self) -> Values:
        """The probability that an interval holds a further change for the worse, shape (intervals,)."""
        masses = np.zeros(len(self.states))
        for column in range(1 + len(self._found), self._columns.shape[1]):
            intervals = self._columns[:, column]
            worse = (intervals >= 0) & (self._coefficients[:, column] > 0)
            np.add.at(masses, intervals[worse], self.probabilities[worse])
        return masses

    @cached_property
    def sizes(self) -> Values:
        """The expected size of the change in each interval, if there is one, shape (intervals,)."""
        totals, weights = np.zeros(len(self.states)), np.full(len(self.states), 1e-300)
        for column in range(1, self._columns.shape[1]):
            intervals = self._columns[:, column]
            there = intervals >= 0
            np.add.at(totals, intervals[there], (self.probabilities * self._coefficients[:, column])[there])
            np.add.at(weights, intervals[there], self.probabilities[there])
        sizes: Values = totals / weights
        return sizes

    @cached_property
    def nothing_more(self) -> float:
        """The probability that there is no further change."""
        changes = self._columns[:, 1 + len(self._found) :]
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
            for column in range(1, self._columns.shape[1]):
                if (interval := self._columns[index, column]) >= 0:
                    levels[interval + 1 :] += self._coefficients[index, column]
            changes = tuple(int(place) for place in self._columns[index, 1 + len(self._found) :] if place >= 0)
            rows.append((float(self.probabilities[index]), changes, levels))
        return rows
