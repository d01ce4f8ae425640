"""What a report says that a run could have seen, against what runs like it do see.

All draws are seeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from kdyno.base.arrays import Values
from kdyno.judge.stats.compare import Comparison, judge
from kdyno.judge.stats.estimate import CONFIDENCE, POWER
from kdyno.judge.stats.observations import Observations, ReplicateSample

MARGIN, ALPHA = 0.01, 0.05
NOISE = 0.01
"""Standard deviation of one block's log-ratio."""


@dataclass(frozen=True)
class ReplicationRates:
    """How often an effect of the size that was printed is called faster or slower in another run like it; shares."""

    before: float
    """Printed: (t(1 - α/2) + t(0.8)) standard errors, whatever the number of comparisons."""
    now: float
    """Printed by the judge."""
    effect_before: float
    """That was printed, on average; a fraction."""
    effect: float


def replication_rates(comparisons: int, blocks: int, draws: int, runs: int, seed: int) -> ReplicationRates:
    """Print effects, from `draws` single comparisons as it was and from `runs` whole runs by the judge, and look for
    each of them, alone among so many comparisons, in a run of its own."""
    random = np.random.default_rng(seed)
    old = random.normal(0, NOISE, (draws, blocks)).std(axis=1, ddof=1) / blocks**0.5
    old *= sum(float(scipy.stats.t.ppf(share, blocks - 1)) for share in (1 - ALPHA / 2, POWER))
    new = np.log1p([effect for _ in range(runs) for effect in _printed(random.normal(0, NOISE, (comparisons, blocks)))])
    return ReplicationRates(
        before=float(called_different(old[:, None] + random.normal(0, NOISE, (draws, blocks)), comparisons).mean()),
        now=float(called_different(new[:, None] + random.normal(0, NOISE, (len(new), blocks)), comparisons).mean()),
        effect_before=float(np.expm1(old.mean())),
        effect=float(np.expm1(new.mean())),
    )


def called_different(runs: Values, comparisons: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return whether paired log-ratios, shape (runs, blocks), are called faster or slower, with the smallest p of so
    many comparisons: p below α after adjustment, and the interval not within the margin.
    """
    n = runs.shape[1]
    mean, error = np.abs(runs.mean(axis=1)), runs.std(axis=1, ddof=1) / n**0.5
    significant = comparisons * 2 * scipy.stats.t.sf(mean / error, n - 1) < ALPHA
    reach = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * error
    different: np.ndarray[tuple[int], np.dtype[np.bool_]] = significant & (mean + reach > np.log1p(MARGIN))
    return different


@dataclass(frozen=True)
class Unseen:
    """Runs in which a variant costs 15 % more in some boots, and nothing otherwise; shares."""

    alike: float
    """Runs in which all seeds are alike."""
    bound: float
    """What is printed then: something that happens in up to this share of boots is not excluded."""
    beyond: float
    """Runs in which all are alike although it happens more often than that: at most 5 % should be."""


def unseen(share: float, blocks: int, draws: int, seed: int) -> Unseen:
    """Measure for something that happens in this share of boots."""
    random = np.random.default_rng(seed)
    alike = float((~(random.random((draws, blocks)) < share).any(axis=1)).mean())
    [comparison] = judged(np.zeros((1, blocks)))
    assert comparison.estimate is not None
    assert comparison.estimate.unseen is not None
    bound = comparison.estimate.unseen
    return Unseen(alike, bound, alike if share > bound else 0.0)


def judged(differences: Values) -> Sequence[Comparison]:
    """The judge's verdicts on log-ratios, shape (benchmarks, blocks), within blocks."""
    blocks = np.arange(differences.shape[1])
    observations = [
        Observations(
            benchmark=f"test {place}",
            unit="ns",
            direction="lower",
            description="",
            groups={"old": ReplicateSample(np.ones(len(blocks)), blocks), "new": ReplicateSample(np.exp(run), blocks)},
        )
        for place, run in enumerate(differences)
    ]
    return judge(observations, ("old", "new"), "old", margin=MARGIN, alpha=ALPHA).comparisons


def _printed(differences: Values) -> list[float]:
    estimates = [comparison.estimate for comparison in judged(differences)]
    return [estimate.detectable for estimate in estimates if estimate and estimate.detectable is not None]
