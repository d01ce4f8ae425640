"""The studentized bootstrap: an interval that doesn't assume normal noise.

The percentile bootstrap is not used: with 6 to 12 blocks its 95 % intervals cover 86 to 90 % (tools/simulate).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kdyno.base.arrays import Labels, Values

DRAWS = 2000
SEED = 20130620
FEWEST = 5
"""With fewer replicates, draws are all alike too often to have a 97.5 % point."""
MOST = 1000
"""With more replicates it agrees with the t interval."""
LEAST_TAIL = 0.01
"""Half this tail must hold at least ten of the draws."""

Interval = tuple[float, float]


def difference_interval(differences: Values, layouts: Labels | None, confidence: float) -> Interval | None:
    """Return the ends for the mean of paired log-ratios, shape (n,); None if there are none, or they tell nothing new.

    Hierarchical where layouts are known (Davison & Hinkley 1997, 3.8): layouts are drawn, then blocks within each.
    """
    clusters = np.arange(len(differences)) if layouts is None else np.unique(layouts, return_inverse=True)[1]
    sizes = np.bincount(clusters)
    count = len(sizes)
    if not (FEWEST <= count <= MOST and len(differences) <= 4 * MOST and 1 - confidence >= LEAST_TAIL):
        return None
    table = np.zeros((count, sizes.max()))
    used = np.arange(sizes.max()) < sizes[:, None]
    table[used] = differences[np.argsort(clusters, kind="stable")]
    random = np.random.default_rng(SEED)
    drawn = random.integers(0, count, (DRAWS, count))
    if sizes.max() == 1:
        means = table[drawn, 0]
    else:
        within = (random.random((DRAWS, count, sizes.max())) * sizes[drawn][:, :, None]).astype(np.int64)
        means = (table[drawn[:, :, None], within] * used[drawn]).sum(axis=2) / sizes[drawn]
    centres = table.sum(axis=1) / sizes
    mean, error = float(centres.mean()), float(np.std(centres, ddof=1)) / count**0.5
    return _studentized_ends(mean, error, means.mean(axis=1), np.std(means, axis=1, ddof=1) / count**0.5, confidence)


def group_interval(variant: Values, baseline: Values, confidence: float) -> Interval | None:
    """Return the ends for the difference of two independent groups' mean logarithms; None as above."""
    sizes = len(variant), len(baseline)
    if not (min(sizes) >= FEWEST and max(sizes) <= MOST and 1 - confidence >= LEAST_TAIL):
        return None
    random = np.random.default_rng(SEED)
    draws = [logs[random.integers(0, len(logs), (DRAWS, len(logs)))] for logs in (variant, baseline)]
    variances = [np.var(drawn_logs, axis=1, ddof=1) / drawn_logs.shape[1] for drawn_logs in draws]
    error = float(sum(np.var(logs, ddof=1) / len(logs) for logs in (variant, baseline)) ** 0.5)
    differences = draws[0].mean(axis=1) - draws[1].mean(axis=1)
    return _studentized_ends(
        float(variant.mean() - baseline.mean()), error, differences, np.sqrt(sum(variances)), confidence
    )


def _studentized_ends(
    mean: float, error: float, means: NDArray[np.float64], errors: NDArray[np.float64], confidence: float
) -> Interval | None:
    """Turn the quantiles of (drawn mean - mean) / drawn error round into an interval, equal in the tails."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.nan_to_num((means - mean) / errors, nan=0.0, posinf=np.inf, neginf=-np.inf)
    low, high = np.quantile(t, [(1 - confidence) / 2, (1 + confidence) / 2], method="nearest")
    if error == 0 or not (np.isfinite(low) and np.isfinite(high)):
        return None
    return float(mean - high * error), float(mean - low * error)
