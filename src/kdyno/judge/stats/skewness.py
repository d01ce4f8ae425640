"""Noise with a long tail on one side: if it is seen, a 95 % interval covers less than that.

The t interval tolerates noise that is skewed alike in both variants, since differences are then even. It doesn't
tolerate rare large values in one of the two: most runs lack them, and are too sure of a mean that lies elsewhere. How
often this is seen, and how often without reason, is simulated in tests/judge_simulation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from kdyno.base.arrays import Values
from kdyno.judge.stats.contrast import Contrast, Paired, PublishedSummaries
from kdyno.judge.stats.logratio import cluster_means

LEVEL = 0.01
"""The probability that normal data are called skewed: D'Agostino's test (1970) of the skewness."""

FEWEST = 8
"""Values that the test needs. With fewer values skewness can't be seen."""

MATTERS = 0.25
"""Skewness of the mean above which intervals are wrong: up to there they cover 93 % and more, however many values."""

UNLIKE = 2.0
"""Standard errors by which the skewness of two groups must differ: equal skewness cancels."""

NOISELESS = 1e-12
"""Logarithms that differ by less differ by rounding."""


@dataclass(frozen=True)
class Skew:
    """Values that are too skewed for their interval to be trusted."""

    of: Literal["differences", "variant", "baseline"]
    """The logarithms' differences within blocks, or the logarithms of one of two independent groups."""
    skewness: float
    """Adjusted Fisher-Pearson coefficient G1: 0 for even noise, positive with a long tail upwards."""
    n: int


def contrast_skew(contrast: Contrast) -> Skew | None:
    """Look at the values that the interval of a contrast rests on: differences, means of layouts, or two groups. Return
    None if they are even enough, or if it is unknown: for summaries, and for fewer than eight values.
    """
    if isinstance(contrast, PublishedSummaries):
        return None
    if not isinstance(contrast, Paired):
        return group_skew(contrast.variant, contrast.baseline)
    differences = contrast.variant - contrast.baseline
    return difference_skew(differences if contrast.layouts is None else cluster_means(differences, contrast.layouts))


def difference_skew(differences: Values) -> Skew | None:
    """Return whether paired log-ratios, shape (n,), are too skewed for the t interval of their mean."""
    skewness, n = _skewness(differences), len(differences)
    if abs(_z(differences)) < _reach(LEVEL) or abs(skewness) / math.sqrt(n) < MATTERS:
        return None
    return Skew("differences", skewness, n)


def group_skew(variant: Values, baseline: Values) -> Skew | None:
    """Return whether the logarithms of two independent groups, shapes (n,) and (m,), are too skewed for Welch's
    interval: one of them must be, and the other one otherwise, since skewness that is alike cancels in the difference
    of the means.
    """
    zs = (_z(variant), _z(baseline))
    if max(map(abs, zs)) < _reach(LEVEL / 2) or abs(zs[0] - zs[1]) < UNLIKE * math.sqrt(2):
        return None
    # the third cumulant of a mean is that of a value over n², and the second that of a value over n
    errors = [float(np.var(logs, ddof=1)) / len(logs) if len(logs) > 1 else 0.0 for logs in (variant, baseline)]
    thirds = [
        _skewness(logs) * error**1.5 / math.sqrt(len(logs))
        for logs, error in zip((variant, baseline), errors, strict=True)
    ]
    if abs(thirds[0] - thirds[1]) / sum(errors) ** 1.5 < MATTERS:
        return None
    if abs(zs[0]) >= abs(zs[1]):
        return Skew("variant", _skewness(variant), len(variant))
    return Skew("baseline", _skewness(baseline), len(baseline))


def sentence(skew: Skew) -> str:
    """Return the sentence for the report."""
    subject = "the differences" if skew.of == "differences" else f"values of the {skew.of}"
    return (
        f"{subject} are skewed: if one of the two has rare large values that the other one lacks, 95 % intervals cover "
        "84 to 89 %"
    )


def _skewness(logs: Values) -> float:
    """Return G1; 0 if it is unknown."""
    n = len(logs)
    return _plain(logs) * math.sqrt(n * (n - 1)) / (n - 2) if _can_tell(logs) else 0.0


def _z(logs: Values) -> float:
    """Return the skewness in standard errors that normal data have; 0 if it is unknown.

    D'Agostino, Biometrika 57 (1970); scipy.stats.skewtest computes the same, but takes half a second to import.
    """
    if not _can_tell(logs):
        return 0.0
    n = len(logs)
    ratio = _plain(logs) * math.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    kurtosis = 3 * (n**2 + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9))
    square = math.sqrt(2 * (kurtosis - 1)) - 1
    return math.asinh(ratio / math.sqrt(2 / (square - 1))) / math.sqrt(math.log(square) / 2)


def _can_tell(logs: Values) -> bool:
    return len(logs) >= FEWEST and float(np.ptp(logs)) >= NOISELESS


def _plain(logs: Values) -> float:
    """Return g1: the third central moment over the second one to the power of 3/2."""
    distances = logs - np.mean(logs)
    spread = math.sqrt(float(np.mean(distances**2)))
    return float(np.mean((distances / spread) ** 3))


def _reach(level: float) -> float:
    return -float(special.ndtri(level / 2))
