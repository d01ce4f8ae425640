"""Geometric means of unpaired data in which each boot, or file, has a speed of its own that all its benchmarks share.

All draws are seeded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from kdyno.base.arrays import Values
from kdyno.judge.stats.compare import judge
from kdyno.judge.stats.estimate import CONFIDENCE
from kdyno.judge.stats.observations import Observations, ReplicateSample

MARGIN, ALPHA = 0.01, 0.05


@dataclass(frozen=True)
class Rates:
    """Of runs in which the two kernels are one and the same; shares."""

    false_verdicts: float
    """Geometric means that are called faster or slower."""
    covered: float
    """95 % intervals of the geometric mean that hold the truth."""


def apart(
    boots: int, benchmarks: int, speed: float, noise: float, draws: int, judged: int, seed: int
) -> tuple[Rates, Rates]:
    """Return the rates with benchmarks taken for independent, as it was, of `draws` runs, and those of the judge's
    verdicts on the first `judged` of them. `speed` is the sd of a boot's own speed, `noise` that of a value in it, both
    of logarithms; each kernel has `boots` boots."""
    random = np.random.default_rng(seed)
    logs = random.normal(0, speed, (draws, 2, boots, 1)) + random.normal(0, noise, (draws, 2, boots, benchmarks))
    return _independent(logs), _judged(logs[:judged])


def _independent(logs: Values) -> Rates:
    """Errors of the benchmarks added up as if they were independent; degrees of freedom after Satterthwaite."""
    boots, benchmarks = logs.shape[2:]
    mean = (logs[:, 0].mean(axis=1) - logs[:, 1].mean(axis=1)).mean(axis=1)
    variances = logs.var(axis=2, ddof=1) / boots
    squares = variances.sum(axis=1) ** 2
    df = squares * (boots - 1) / (variances**2).sum(axis=1)
    total = variances.sum(axis=(1, 2))
    df = total**2 / (squares / df).sum(axis=1)
    reach = scipy.stats.t.ppf((1 + CONFIDENCE) / 2, df) * np.sqrt(total) / benchmarks
    covered = np.abs(mean) <= reach
    equivalent = np.abs(mean) + reach <= np.log1p(MARGIN)
    return Rates(float((~covered & ~equivalent).mean()), float(covered.mean()))


def _judged(logs: Values) -> Rates:
    boots, benchmarks = logs.shape[2:]
    verdicts, covered = [], []
    for run in np.exp(logs):
        observations = [
            Observations(
                benchmark=f"test {place}",
                unit="us",
                direction="lower",
                description="",
                groups={
                    name: ReplicateSample(run[side, :, place], boots=np.arange(boots) + side * boots)
                    for side, name in enumerate(("new", "old"))
                },
            )
            for place in range(benchmarks)
        ]
        [mean] = judge(observations, ("old", "new"), "old", margin=MARGIN, alpha=ALPHA).geometric_means
        assert mean.estimate is not None
        assert mean.estimate.low is not None
        assert mean.estimate.high is not None
        verdicts.append(mean.verdict in ("faster", "slower"))
        covered.append(mean.estimate.low <= 1 <= mean.estimate.high)
    return Rates(float(np.mean(verdicts)), float(np.mean(covered)))
