"""Change points of several noisy series at once: E-divisive, with a threshold by permutation. Pure.

E-divisive: Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate data",
Journal of the American Statistical Association 109 (2014), with the exponent 1. The statistic is scaled by the mean
distance of all pairs, so that series of different spread have one threshold.

The threshold is the quantile of the largest statistic of all series when kernels are permuted. All series are permuted
alike, so what disturbs several benchmarks at once is in the threshold. Such series have no change: it is an A/A test.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Series = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Places of kernels, and the values there, in the order of the places."""

FEWEST = 3
"""Points on either side of a change. Fewer are no alarm: one odd run would be."""
FALSE_ALARMS = 0.05
"""The probability of an alarm on an axis without a change."""
PERMUTATIONS = 199
WINDOW = 200
"""The kernels that are looked at, the newest ones: the work grows with the square of their number."""


def threshold(series: Sequence[Series], kernels: int, permutations: int = PERMUTATIONS) -> float:
    """Return the statistic that is exceeded by chance with the probability FALSE_ALARMS. Equal for equal series."""
    random = np.random.default_rng(kernels)
    distances = [_distances(values) for _, values in series]
    largest = []
    for _ in range(permutations):
        ranks = random.permutation(kernels)
        scores = [0.0]
        for (places, _), distance in zip(series, distances, strict=True):
            order = np.argsort(ranks[places])
            scores.append(best_split(distance[np.ix_(order, order)])[1])
        largest.append(max(scores))
    largest.sort()
    return float(largest[min(int(np.ceil((1 - FALSE_ALARMS) * (permutations + 1))) - 1, permutations - 1)])


def change_points(values: NDArray[np.float64], limit: float) -> list[int]:
    """Return the indexes of the first values after each change, in order."""
    found: list[int] = []
    segments = [(0, len(values))]
    while segments:
        first, end = segments.pop()
        split, score = best_split(_distances(values[first:end]))
        if split and score > limit:
            found.append(first + split)
            segments += [(first, first + split), (first + split, end)]
    return sorted(found)


def _distances(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances of all pairs over their mean; zeros if all values are equal."""
    distances = np.abs(values[:, None] - values[None, :])
    pairs = len(values) * (len(values) - 1)
    mean = distances.sum() / pairs if pairs else 0.0
    return distances / mean if mean > 0 else distances


def best_split(distances: NDArray[np.float64]) -> tuple[int, float]:
    """Return the first index after the best split, and its statistic; 0 for too few values."""
    number = len(distances)
    if number < 2 * FEWEST:
        return 0, 0.0
    sums = distances.cumsum(axis=1)
    within = 2 * sums.diagonal().cumsum()  # of all pairs up to each value, in both orders
    left = np.arange(FEWEST, number - FEWEST + 1)
    right = number - left
    within_left = within[left - 1]
    across = sums[:, -1].cumsum()[left - 1] - within_left
    within_right = within[-1] - within_left - 2 * across
    energy = (
        2 * across / (left * right)
        - within_left / np.maximum(left * (left - 1), 1)
        - within_right / np.maximum(right * (right - 1), 1)
    )
    scores = left * right / number * energy
    best = int(scores.argmax())
    return int(left[best]), float(scores[best])
