"""Fixed effects and random intercepts, by restricted maximum likelihood (Patterson & Thompson 1971).

statsmodels' MixedLM maximises the same, but ends with a singular matrix if a random effect seems to explain nothing: in
two of three runs of six blocks that have nothing in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from kdyno.base.arrays import Labels, Values

STARTS = (0.1, 1.0, 10.0)
"""Start values for the standard deviations of the random effects, in those of the noise."""

LARGEST = 1e4
"""The range of these ratios."""


@dataclass(frozen=True)
class MixedFit:
    """The result of a model."""

    effects: Values
    """Effects of the columns of the design, shape (k,)."""
    errors: Values
    """Their standard errors, shape (k,)."""
    converged: bool


def fit_reml(values: Values, design: Values, levels: Sequence[Labels]) -> MixedFit:
    """Fit values, shape (n,), by a design of full rank, shape (n, k), with a random intercept for each level's labels.

    Raise numpy.linalg.LinAlgError if the design is not of full rank.
    """
    products = _Products(values, design, levels)
    ends = [
        scipy.optimize.minimize(
            products.criterion, [start] * len(levels), method="L-BFGS-B", bounds=[(0.0, LARGEST)] * len(levels)
        )
        for start in STARTS
    ]
    best = min([end for end in ends if end.success] or ends, key=lambda end: float(end.fun))
    effects, variance, information = products.solve(best.x)[:3]
    squares = variance * np.diag(np.linalg.inv(information))  # below 0 by rounding if nothing is left over
    return MixedFit(effects, np.sqrt(np.maximum(squares, 0.0)), bool(best.success))


class _Products:
    """The likelihood as a function of the random effects' spreads: it only needs products of small matrices."""

    def __init__(self, values: Values, design: Values, levels: Sequence[Labels]) -> None:
        columns = [np.eye(int(labels.max()) + 1)[labels] for labels in levels]
        self.widths = [column.shape[1] for column in columns]
        self.df = len(values) - design.shape[1]
        random, both = np.hstack(columns), np.column_stack([design, values])
        self.random, self.cross, self.fixed = random.T @ random, random.T @ both, both.T @ both

    def solve(self, ratios: Values) -> tuple[Values, float, Values, float]:
        """Return effects, variance of the noise, information matrix (times that variance), log determinant of the
        values'.
        """
        scale = np.repeat(ratios, self.widths)
        # Woodbury: the inverse of 1 + Z Z' by that of 1 + Z' Z
        lower = np.linalg.cholesky(np.eye(len(scale)) + scale[:, None] * self.random * scale)
        half = scipy.linalg.solve_triangular(lower, scale[:, None] * self.cross, lower=True)
        rest = self.fixed - half.T @ half
        information, right = rest[:-1, :-1], rest[:-1, -1]
        effects: Values = np.linalg.solve(information, right)
        variance = float(rest[-1, -1] - right @ effects) / self.df
        return effects, variance, information, 2 * float(np.log(np.diag(lower)).sum())

    def criterion(self, ratios: Values) -> float:
        """Return twice the restricted log likelihood, negative, up to a constant."""
        _, variance, information, determinant = self.solve(ratios)
        noise = self.df * np.log(max(variance, np.finfo(float).tiny))
        return float(noise + determinant + np.linalg.slogdet(information)[1])
