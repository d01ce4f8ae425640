"""What measured recipes say of others: effects of choices, and of pairs of choices. Pure.

The gain of a recipe is a sum: an effect for each choice that differs from the baseline's, and one for each pair of
such choices. The baseline's gain is 0 by definition. All effects are normally distributed beforehand, around 0, those
of pairs with a smaller spread; their spreads are those under which the measured gains are most likely (type II maximum
likelihood; Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapter 5). A knob that nobody has
tried has no effect, with a wide interval.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from kdyno.base.arrays import Values
from kdyno.tune.space.space import Point

MAIN_SPREADS = (0.25, 0.5, 1.0, 2.0)
"""Spreads of the effects of choices that are compared, as parts of that of the gains."""
PAIR_SPREADS = (0.0, 0.1, 0.3, 0.7)
"""Spreads of the effects of pairs, as parts of that of choices."""
NOISES = (1.0, 2.0, 4.0)
"""Errors of gains that are compared, as parts of the measured error."""
LEAST_NOISE = 1e-5
"""The least error of a gain: a lane that repeats exactly has none."""


@dataclass(frozen=True)
class PredictedGains:
    """The mean and the standard deviation of the gain at each of several points."""

    mean: Values
    deviation: Values


class Effects:
    """The effects that measured gains show."""

    def __init__(self, points: Sequence[Point], gains: Sequence[float], error: float) -> None:
        """`gains` are logarithms of ratios at `points`; `error` is their common standard error."""
        self.points = _array(points)
        self.gains = np.asarray(gains, dtype=np.float64)
        spread = max(float(np.sqrt(np.mean(self.gains**2))) if len(self.gains) else 0.0, 10 * LEAST_NOISE)
        base = max(error, LEAST_NOISE)
        best = None
        shared = _shared(self.points, self.points)
        for main, pair, noise in itertools.product(MAIN_SPREADS, PAIR_SPREADS, NOISES):
            spreads = (main * spread, pair * main * spread, noise * base)
            likelihood, factor, weights = self._fit(shared, *spreads)
            if best is None or likelihood > best[0]:
                best = (likelihood, spreads, factor, weights)
        assert best is not None
        _, (self.main, self.pair, self.noise), self._factor, self._weights = best

    def _fit(self, shared: Values, main: float, pair: float, noise: float) -> tuple[float, tuple[Values, bool], Values]:
        covariance = _covariance(shared, main, pair) + noise**2 * np.eye(len(self.gains))
        factor = cho_factor(covariance, lower=True)
        weights = cho_solve(factor, self.gains)
        likelihood = -0.5 * float(self.gains @ weights) - float(np.log(np.diag(factor[0])).sum())
        return likelihood, factor, weights

    def predict(self, points: Sequence[Point]) -> PredictedGains:
        """Return the gain at these points."""
        wanted = _array(points)
        cross = _covariance(_shared(wanted, self.points), self.main, self.pair)
        own = np.count_nonzero(wanted, axis=1).astype(np.float64)
        prior = _covariance(own, self.main, self.pair)
        explained = np.einsum("ij,ji->i", cross, cho_solve(self._factor, cross.T))
        return PredictedGains(cross @ self._weights, np.sqrt(np.maximum(prior - explained, 0.0)))

    def draws(self, points: Sequence[Point], count: int, rng: np.random.Generator) -> Values:
        """Return draws of the gains at these points together: one row for each draw."""
        wanted = _array(points)
        cross = _covariance(_shared(wanted, self.points), self.main, self.pair)
        prior = _covariance(_shared(wanted, wanted), self.main, self.pair)
        covariance = prior - cross @ cho_solve(self._factor, cross.T)
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(cross @ self._weights + rng.standard_normal((count, len(wanted))) @ root.T)


def _array(points: Sequence[Point]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.asarray(points, dtype=np.int64).reshape(len(points), -1)


def _shared(
    first: np.ndarray[tuple[int, int], np.dtype[np.int64]], second: np.ndarray[tuple[int, int], np.dtype[np.int64]]
) -> Values:
    """Return for each pair of points the number of knobs with the same choice, which isn't the baseline's."""
    count = np.zeros((len(first), len(second)))
    for place in range(first.shape[1]):
        column, other = first[:, place], second[:, place]
        count += (column[:, None] == other[None, :]) & (column[:, None] != 0)
    return count


def _covariance(shared: Values, main: float, pair: float) -> Values:
    """Return the covariance of gains at points with so many shared choices, which have s(s - 1)/2 shared pairs."""
    return np.asarray(main**2 * shared + pair**2 * shared * (shared - 1) / 2)
