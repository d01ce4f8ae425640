"""Least squares for many curves at once: a bootstrap of `scaling` needs thousands of them.

scipy.optimize.least_squares fits one curve in milliseconds; here the same problem is solved for all draws together, by
Levenberg and Marquardt's method with bounds (projected steps; a parameter on a bound moves only inwards).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_STEPS = 100
DAMPING = 1e-3
LEAST_DAMPING, LARGEST_DAMPING = 1e-12, 1e10
LEAST_STEP = 1e-6
"""The tolerance relative to 1 + the parameter; the error left is far below the differences of draws."""


def solve(basis: Array, logs: Array, weights: Array, start: Array, upper: Array) -> Array:
    """Return the parameters, shape (draws, p), of logs ≈ c - ln(1 + parameters · basis), with c free for each draw.

    `basis` has shape (p, k); `logs` and `weights` have shape (draws, k), weights not negative; `start` and `upper` have
    shape (p,). Parameters lie between 0 and `upper`.
    """
    parameters = np.tile(start, (len(logs), 1))
    damping = np.full(len(logs), DAMPING)
    residuals, slopes = _linearise(basis, logs, weights, parameters)
    costs = (weights * residuals**2).sum(axis=1)
    moving = np.arange(len(logs))
    for _ in range(MOST_STEPS):
        steps = _steps(residuals[moving], slopes[moving], weights[moving], parameters[moving], damping[moving], upper)
        tried = np.clip(parameters[moving] + steps, 0, upper)
        moved = tried - parameters[moving]
        new_residuals, new_slopes = _linearise(basis, logs[moving], weights[moving], tried)
        new_costs = (weights[moving] * new_residuals**2).sum(axis=1)
        better = new_costs < costs[moving]
        taken = moving[better]
        parameters[taken], costs[taken] = tried[better], new_costs[better]
        residuals[taken], slopes[taken] = new_residuals[better], new_slopes[better]
        damping[moving] = np.maximum(damping[moving] * np.where(better, 0.1, 10), LEAST_DAMPING)
        still = (np.abs(moved) > LEAST_STEP * (1 + tried)).any(axis=1) & (damping[moving] < LARGEST_DAMPING)
        moving = moving[still]
        if not len(moving):
            break
    return parameters


def _linearise(basis: Array, logs: Array, weights: Array, parameters: Array) -> tuple[Array, Array]:
    """Return residuals, shape (draws, k), and their derivatives, shape (draws, p, k), both without the constant c."""
    divisors = 1 + parameters @ basis
    return (
        _centre(logs + np.log(divisors), weights),
        _centre(basis[None, :, :] / divisors[:, None, :], weights[:, None, :]),
    )


def _centre(values: Array, weights: Array) -> Array:
    means = (weights * values).sum(axis=-1, keepdims=True) / weights.sum(axis=-1, keepdims=True)
    return np.asarray(values - means, dtype=np.float64)


def _steps(residuals: Array, slopes: Array, weights: Array, parameters: Array, damping: Array, upper: Array) -> Array:
    """Return the next step of each draw; 0 for parameters that are on a bound and would leave it."""
    weighted = slopes * weights[:, None, :]
    gradient = (weighted * residuals[:, None, :]).sum(axis=-1)
    curvature = weighted @ slopes.transpose(0, 2, 1)
    held = ((parameters <= 0) & (gradient > 0)) | ((parameters >= upper) & (gradient < 0))
    free = ~held
    curvature *= free[:, :, None] & free[:, None, :]
    diagonal = np.arange(curvature.shape[1])
    sizes = curvature[:, diagonal, diagonal]
    curvature[:, diagonal, diagonal] = np.where(free, sizes * (1 + damping[:, None]) + np.finfo(float).tiny, 1.0)
    singular = free & (sizes <= 0)
    curvature[:, diagonal, diagonal] = np.where(singular, 1.0, curvature[:, diagonal, diagonal])
    steps = np.linalg.solve(curvature, -np.where(free, gradient, 0.0)[:, :, None])[:, :, 0]
    return np.asarray(steps, dtype=np.float64)
