"""Counts how often the judge calls one kernel under two names different."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from kdyno.base.arrays import Labels, Values
from kdyno.base.measurement import Correction
from kdyno.judge.stats.compare import Comparison, judge
from kdyno.judge.stats.estimate import Estimate, EstimateLimits
from kdyno.judge.stats.observations import Observations, ReplicateSample
from kdyno.judge.stats.planning.power import detectable
from kdyno.judge.stats.verdict import DIFFERENT, Verdict
from kdyno.judge.verdicts.selftest import Kind, LinkOrder, Rate, Tested


@dataclass(frozen=True)
class Design:
    """The settings of the judge: those of an experiment that doesn't sample layouts."""

    kind: Kind
    experiments: int
    blocks: int
    planned: int
    margin: float
    alpha: float
    correction: Correction

    def experiment_of(self, blocks: Labels) -> Labels:
        """Return the experiment of each block: A/A experiments follow one another, layouts take turns."""
        return blocks // self.blocks if self.kind == "aa" else blocks % self.experiments


def rate(count: int, of: int) -> Rate:
    """Return a share with its exact 95 % interval. Source: Clopper & Pearson, Biometrika 26 (1934)."""
    interval = stats.binomtest(count, of).proportion_ci(0.95, "exact")
    return Rate(count=count, of=of, rate=count / of, low=float(interval.low), high=float(interval.high))


def judge_all(
    observations: Sequence[Observations], names: tuple[str, str], design: Design
) -> tuple[Rate, tuple[Tested, ...]]:
    """Judge every experiment; return the family-wise rate of false verdicts, and each benchmark's part.

    Experiments in which a benchmark could not be compared don't count for it.
    """
    experiments = [_comparisons(observations, names, number, design) for number in range(design.experiments)]
    wrong = sum(any(comparison.verdict in DIFFERENT for comparison in comparisons) for comparisons in experiments)
    verdict_by_benchmark = _by_layouts(observations, names, design) if design.kind == "layouts" else {}
    spreads = [_spread(observed, names) for observed in observations]
    results = []
    for observed, spread in zip(observations, spreads, strict=True):
        comparisons_of_benchmark = [
            comparison
            for experiment in experiments
            for comparison in experiment
            if comparison.benchmark == observed.benchmark and comparison.estimate
        ]
        if comparisons_of_benchmark:
            result = _tested(observed, comparisons_of_benchmark, spread, sum(map(bool, spreads)), design)
            if design.kind == "layouts":
                link_order = _link_order(comparisons_of_benchmark, verdict_by_benchmark.get(observed.benchmark))
                result = result.model_copy(update={"link_order": link_order})
            results.append(result)
    return rate(wrong, design.experiments), tuple(results)


def _comparisons(
    observations: Sequence[Observations], names: tuple[str, str], number: int, design: Design
) -> Sequence[Comparison]:
    return _judged([_part(observed, number, design) for observed in observations], names, design)


def _judged(observations: Sequence[Observations], names: tuple[str, str], design: Design) -> Sequence[Comparison]:
    return judge(
        observations, names, names[0], margin=design.margin, alpha=design.alpha, correction=design.correction
    ).comparisons


def _part(observed: Observations, number: int, design: Design) -> Observations:
    """Return the observations of experiment `number`."""
    groups = {}
    for variant in observed.groups:
        values, blocks = _values_and_blocks(observed, variant)
        inside = design.experiment_of(blocks) == number
        groups[variant] = ReplicateSample(values[inside], blocks[inside])
    return replace(observed, groups=groups)


def _by_layouts(
    observations: Sequence[Observations], names: tuple[str, str], design: Design
) -> dict[str, Verdict | None]:
    """Return by benchmark the verdict of all blocks, judged like a run that samples layouts."""
    clustered = []
    for observed in observations:
        groups = {}
        for variant in observed.groups:
            values, blocks = _values_and_blocks(observed, variant)
            groups[variant] = ReplicateSample(values, blocks, clusters=design.experiment_of(blocks))
        clustered.append(replace(observed, groups=groups))
    return {comparison.benchmark: comparison.verdict for comparison in _judged(clustered, names, design)}


def _link_order(comparisons_of_benchmark: Sequence[Comparison], verdict: Verdict | None) -> LinkOrder:
    logs = [math.log(comparison.estimate.ratio) for comparison in comparisons_of_benchmark if comparison.estimate]
    return LinkOrder(
        spread=float(np.std(logs, ddof=1)) if len(logs) > 1 else 0.0,
        largest=math.expm1(max(map(abs, logs))),
        verdict=verdict,
    )


def _tested(observed: Observations, judged: Sequence[Comparison], spread: float, family: int, design: Design) -> Tested:
    """Return the result of a benchmark. `family` is the number of benchmarks with a spread, which share alpha."""
    estimates = [comparison.estimate for comparison in judged if comparison.estimate]
    limits = EstimateLimits(design.margin, design.alpha)
    has_spread = spread > 0 and design.planned > 1
    return Tested(
        benchmark=observed.benchmark,
        unit=observed.unit,
        false_verdicts=rate(sum(comparison.verdict in DIFFERENT for comparison in judged), len(judged)),
        false_positives=rate(
            sum(estimate.p is not None and estimate.p < design.alpha for estimate in estimates), len(judged)
        ),
        covered=rate(sum(map(_covers_one, estimates)), len(judged)),
        spread=spread,
        detectable=detectable(design.planned, spread, limits, family=family) if has_spread else None,
    )


def _covers_one(estimate: Estimate) -> bool:
    """Return whether the interval contains the true ratio 1. The interval of equal replicates is one point."""
    if estimate.low is None or estimate.high is None:
        return estimate.error is None or estimate.ratio == 1
    return estimate.low <= 1 <= estimate.high


def _spread(observed: Observations, names: tuple[str, str]) -> float:
    (values, blocks), (other_values, other_blocks) = (_values_and_blocks(observed, name) for name in names)
    other_value_by_block = dict(zip(other_blocks.tolist(), other_values.tolist(), strict=True))
    logs = [
        math.log(value / other_value_by_block[block])
        for block, value in zip(blocks.tolist(), values.tolist(), strict=True)
        if block in other_value_by_block
    ]
    return float(np.std(logs, ddof=1)) if len(logs) > 1 else 0.0


def _values_and_blocks(observed: Observations, variant: str) -> tuple[Values, Labels]:
    sample = observed.sample(variant)
    assert sample is not None and sample.blocks is not None  # the blocks of our own boots are known
    return sample.values, sample.blocks
