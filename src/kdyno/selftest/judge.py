"""From the boots of one image under two names to how often the judge was wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from kdyno.judge.compare import Comparison, judge
from kdyno.judge.observations import Observations, Sample
from kdyno.judge.planning.power import detectable
from kdyno.measurement import Correction
from kdyno.verdicts.selftest import Rate, Tested


@dataclass(frozen=True)
class Design:
    """How each A/A experiment is judged: as every other one."""

    experiments: int
    blocks: int
    planned: int
    margin: float
    alpha: float
    correction: Correction


def rate(count: int, of: int) -> Rate:
    """A share with its exact 95 % interval. Source: Clopper & Pearson, Biometrika 26 (1934)."""
    interval = stats.binomtest(count, of).proportion_ci(0.95, "exact")
    return Rate(count=count, of=of, rate=count / of, low=float(interval.low), high=float(interval.high))


def judge_all(
    observations: Sequence[Observations], names: tuple[str, str], design: Design
) -> tuple[Rate, tuple[Tested, ...]]:
    """Judge every A/A experiment; return the family-wise rate of false verdicts, and each benchmark's part.

    Experiment k has the blocks from k * design.blocks on. Experiments in which a benchmark could not be compared don't
    count for it.
    """
    experiments = [_comparisons(observations, names, number, design) for number in range(design.experiments)]
    wrong = sum(
        any(comparison.verdict in ("faster", "slower") for comparison in comparisons) for comparisons in experiments
    )
    tested = []
    for observed in observations:
        judged = [
            comparison
            for experiment in experiments
            for comparison in experiment
            if comparison.benchmark == observed.benchmark and comparison.estimate
        ]
        if judged:
            tested.append(_tested(observed, judged, names, design))
    return rate(wrong, design.experiments), tuple(tested)


def _comparisons(
    observations: Sequence[Observations], names: tuple[str, str], number: int, design: Design
) -> Sequence[Comparison]:
    part = [_blocks(observed, number * design.blocks, (number + 1) * design.blocks) for observed in observations]
    return judge(
        part, names, names[0], margin=design.margin, alpha=design.alpha, correction=design.correction
    ).comparisons


def _blocks(observed: Observations, first: int, end: int) -> Observations:
    """The part of the observations that lies in blocks `first` to `end` - 1."""
    groups = {}
    for variant in observed.groups:
        sample = observed.sample(variant)
        assert sample is not None and sample.blocks is not None  # our own boots
        inside = (sample.blocks >= first) & (sample.blocks < end)
        groups[variant] = Sample(sample.values[inside], sample.blocks[inside])
    return Observations(observed.benchmark, observed.unit, observed.direction, observed.description, groups)


def _tested(observed: Observations, judged: Sequence[Comparison], names: tuple[str, str], design: Design) -> Tested:
    estimates = [comparison.estimate for comparison in judged if comparison.estimate]
    spread = _spread(observed, names)
    return Tested(
        benchmark=observed.benchmark,
        unit=observed.unit,
        false_verdicts=rate(sum(comparison.verdict in ("faster", "slower") for comparison in judged), len(judged)),
        false_positives=rate(
            sum(estimate.p is not None and estimate.p < design.alpha for estimate in estimates), len(judged)
        ),
        covered=rate(sum(_covers_one(estimate.low, estimate.high) for estimate in estimates), len(judged)),
        spread=spread,
        detectable=detectable(design.planned, spread, design.alpha),
    )


def _covers_one(low: float | None, high: float | None) -> bool:
    return low is None or high is None or low <= 1 <= high


def _spread(observed: Observations, names: tuple[str, str]) -> float:
    first, second = (observed.sample(name) for name in names)
    assert first is not None and second is not None
    assert first.blocks is not None and second.blocks is not None
    theirs = dict(zip(second.blocks.tolist(), second.values.tolist(), strict=True))
    logs = [
        math.log(value / theirs[block])
        for block, value in zip(first.blocks.tolist(), first.values.tolist(), strict=True)
        if block in theirs
    ]
    return float(np.std(logs, ddof=1)) if len(logs) > 1 else 0.0
