"""Moments of a log-ratio: the basis of every interval, p-value and detectable effect, whatever the design was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kdyno.base.arrays import Labels, Values
from kdyno.judge.stats.observations import Summary

MOST_VARIATION = 0.3
"""Up to this sd/mean, ln(mean) of a summary has the sd sd/mean to within 5 % (normal data, delta method)."""


@dataclass(frozen=True)
class LogRatio:
    """The mean of ln(variant / baseline), and its precision."""

    mean: float
    error: float | None
    """Standard error; 0 if everything agrees exactly, None if there is no replicate to tell."""
    df: float | None
    """Degrees of freedom of the error; None without an error."""
    units: int
    """Replicates that the error rests on; those of the smaller side if the two differ."""
    rounding: float = 0.0
    """The error that rounding may have added to the mean, if values agree so closely that rounding hides it."""


def log_ratio_of_differences(differences: Values) -> LogRatio:
    """Return the log-ratio of paired replicates from ln(variant / baseline), shape (n,), n >= 1: t with n - 1 degrees
    of freedom.
    """
    n = len(differences)
    mean, variance = _moments(differences)
    return LogRatio(mean, None, None, 1) if n == 1 else LogRatio(mean, math.sqrt(variance / n), n - 1, n)


def log_ratio_of_layouts(differences: Values, layouts: Labels) -> LogRatio:
    """Return the log-ratio from paired log-ratios, shape (n,), and the layout of each: the replicate is the mean over
    one layout's blocks.

    Boots of one layout share its effects on the caches, so that n of them are not n experiments.
    """
    if len(set(layouts.tolist())) > 1 and np.ptp(differences) == 0:
        return log_ratio_of_differences(differences[np.unique(layouts, return_index=True)[1]])
    return log_ratio_of_differences(cluster_means(differences, layouts))


def log_ratio_of_groups(variant: Values, baseline: Values) -> LogRatio:
    """Return the log-ratio from the logarithms of two independent groups, shapes (n,) and (m,), each >= 1: Welch, B. L.
    (1947).
    """
    moments = [_moments(logs) for logs in (variant, baseline)]
    mean = moments[0][0] - moments[1][0]
    sizes = [len(variant), len(baseline)]
    if min(sizes) == 1:
        return LogRatio(mean, None, None, 1)
    return _welch(mean, [math.sqrt(variance / n) for (_, variance), n in zip(moments, sizes, strict=True)], sizes)


def log_ratio_of_summaries(variant: Summary, baseline: Summary) -> LogRatio:
    """Return the log-ratio from published means and standard deviations, by the delta method: sd of ln(x) is sd / mean.

    Good if sd / mean is small; `MOST_VARIATION` is the limit up to which kdyno trusts it.
    """
    mean = math.log(variant.mean) - math.log(baseline.mean)
    units = min(variant.n, baseline.n)
    if units == 1:
        return LogRatio(mean, None, None, 1)
    errors = [summary.sd / summary.mean / math.sqrt(summary.n) for summary in (variant, baseline)]
    return _welch(mean, errors, [variant.n, baseline.n])


def cluster_means(values: Values, clusters: Labels) -> Values:
    """Return means by cluster, shape (number of clusters,), in the order of the labels."""
    _, index = np.unique(clusters, return_inverse=True)
    means: Values = np.bincount(index, weights=values) / np.bincount(index)
    return means


def _welch(mean: float, errors: Sequence[float], sizes: Sequence[int]) -> LogRatio:
    error, df = _pool_errors(errors, [n - 1 for n in sizes])
    return LogRatio(mean, error, df, min(sizes))


def _pool_errors(errors: Sequence[float], dfs: Sequence[float]) -> tuple[float, float]:
    """Return the standard error of a sum, and its degrees of freedom; scaled, so that tiny errors don't vanish when
    squared.
    """
    largest = max(errors)
    if largest == 0:
        return 0.0, sum(dfs)
    parts = [(error / largest) ** 2 for error in errors]
    df = sum(parts) ** 2 / sum(part**2 / df for part, df in zip(parts, dfs, strict=True))
    return largest * math.sqrt(sum(parts)), df


def _moments(values: Values) -> tuple[float, float]:
    """Return mean and variance, which is 0 for a single value."""
    if (
        values.min() == values.max()
    ):  # exact counts agree to the last digit. numpy's mean of equal numbers may differ from them
        return float(values[0]), 0.0
    mean = float(np.mean(values))
    distances = values - mean
    return mean, float(distances @ distances) / (len(values) - 1)
