"""A law fitted to means of ln X: the parameters, and how well they fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from kdyno.judge.stats.scaling.laws import Bound, Law
from kdyno.judge.stats.scaling.levels import ProcessLevel, orders_of_blocks

ON_BOUND = 1e-9
"""A parameter is on its bound if it is this near, as a fraction of its effect at the largest n."""
EXACT = 1e-20
"""Squares of ln X per value below which a curve fits exactly: the rounding of doubles leaves that much."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """The input of a fit, whatever the law; arrays of shape (k,), k the number of different n."""

    n: Array
    counts: Array
    """Numbers of replicates."""
    logs: Array
    """Means of ln X."""
    pure: float
    """Sum of squares of ln X around these means, without the part that blocks share."""
    pure_df: int
    """The degrees of freedom of it."""

    @classmethod
    def from_levels(cls, levels: Sequence[ProcessLevel]) -> Data:
        logs = [np.log(level.sample.values) for level in levels]
        means = np.array([_mean(own) for own in logs])
        pure = float(sum(((own - mean) ** 2).sum() for own, mean in zip(logs, means, strict=True)))
        df = sum(len(own) - 1 for own in logs)
        if (orders := orders_of_blocks(levels)) is not None:
            table = np.array([own[order] for own, order in zip(logs, orders, strict=True)])
            rest = table - means[:, None]
            shared = rest.mean(axis=0)
            pure, df = float(((rest - shared) ** 2).sum()), df - (len(shared) - 1)
        return cls(
            n=np.array([level.n for level in levels], dtype=np.float64),
            counts=np.array([len(own) for own in logs], dtype=np.float64),
            logs=means,
            pure=pure,
            pure_df=df,
        )


def basis_of(law: Law, n: Array) -> tuple[Array, Array]:
    """Return n - 1 and n (n - 1), scaled so that the largest is 1, shape (p, k); and the scales, shape (p,)."""
    rows = np.array([n - 1, n * (n - 1)] if law == "usl" else [n - 1])
    scales = rows[:, -1]
    return rows / scales[:, None], scales


def least_squares(basis: Array, logs: Array, counts: Array, upper: Array) -> tuple[Array, list[Bound]]:
    """Return the scaled parameters, and which of them are on a bound; the best from two starts."""
    roots = np.sqrt(counts)

    def residuals(parameters: Array) -> Array:
        rest = logs + np.log1p(parameters[1:] @ basis) - parameters[0]
        return np.asarray(roots * rest, dtype=np.float64)

    def slopes(parameters: Array) -> Array:
        divisors = 1 + parameters[1:] @ basis
        return np.asarray((roots * np.vstack([-np.ones_like(logs), basis / divisors])).T, dtype=np.float64)

    def fitted(start: Array) -> optimize.OptimizeResult:
        constant = constants(basis, logs[None], counts[None], start[None])
        return optimize.least_squares(
            residuals,
            np.concatenate([constant, start]),
            jac=slopes,
            bounds=([-np.inf] + [0.0] * len(basis), [np.inf, *upper]),
            method="dogbox",
            xtol=1e-14,
            ftol=1e-14,
            gtol=1e-14,
        )

    relative = roots * np.exp(logs - logs.max())  # n / X is linear in the parameters, and as precise as it is large
    linear, _ = optimize.nnls((np.vstack([np.ones_like(logs), basis]) * relative).T, roots)
    starts = [np.full(len(basis), 0.1)]
    if linear[0] > 0:
        starts.append(np.asarray(linear[1:] / linear[0], dtype=np.float64))
    best = min((fitted(np.minimum(start, upper)) for start in starts), key=lambda result: float(result.cost))
    scaled = np.asarray(best.x[1:], dtype=np.float64)
    lowest, highest = scaled <= ON_BOUND, scaled >= upper * (1 - ON_BOUND)
    bounds: list[Bound] = [
        "lowest" if low else "highest" if high else None for low, high in zip(lowest, highest, strict=True)
    ]
    return np.where(lowest, 0.0, np.where(highest, upper, scaled)), bounds


def constants(basis: Array, logs: Array, counts: Array, parameters: Array) -> Array:
    """Return ln X1 of each draw: the weighted mean of the law's residuals."""
    rest = logs + np.log1p(parameters @ basis)
    return np.asarray((counts * rest).sum(axis=1) / counts.sum(axis=1), dtype=np.float64)


def quality(data: Data, missed: float, parameters: int) -> tuple[float, float | None, float | None]:
    """Return the residual spread, the p of a lack-of-fit F test, and AICc. `missed`: weighted squares of means off the
    curve.

    The part that blocks share is not a residual: it is taken out, together with its degrees of freedom.
    """
    levels = len(data.n)
    residual_df = data.pure_df + levels - parameters
    total = data.pure + missed
    if total <= EXACT * (levels + data.pure_df):
        return 0.0, None, None
    residual_sd = math.sqrt(total / residual_df) if residual_df else 0.0
    misfit_p = None
    if levels > parameters and data.pure_df and data.pure > 0:
        ratio = missed / (levels - parameters) / (data.pure / data.pure_df)
        misfit_p = float(special.fdtrc(levels - parameters, data.pure_df, ratio))
    values, k = data.pure_df + levels, parameters + 1  # the spread is one of them
    if values - k - 1 <= 0:
        return residual_sd, misfit_p, None
    return residual_sd, misfit_p, values * math.log(total / values) + 2 * k + 2 * k * (k + 1) / (values - k - 1)


def _mean(logs: Array) -> float:
    """Return the mean of equal numbers exactly: numpy's may differ from them."""
    return float(logs[0]) if logs.min() == logs.max() else float(logs.mean())
