"""The whole workload as one comparison: the geometric mean of speeds, made from values that were measured together.

Benchmarks of one boot share the conditions of that boot, so their errors go the same way: one mean for each boot, and
the means are the replicates. Taken for independent, an A/A of five boots of 12 benchmarks, each boot with a speed of
its own (sd 2 %), was called different in more than half of all cases (tools/simulate).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kdyno.base.arrays import Labels, Values
from kdyno.base.measurement import Quantity
from kdyno.judge.stats.contrast import Contrast, Paired, Unpaired, estimate_contrast, log_ratio
from kdyno.judge.stats.estimate import Estimate, EstimateLimits, estimate_ratio
from kdyno.judge.stats.logratio import LogRatio, cluster_means
from kdyno.judge.stats.observations import Observations

NO_DIRECTION = "for no benchmark is it known whether lower or higher is better"
NOT_IN_ALL = "no benchmark was measured in all blocks by both"
NOT_TOGETHER = "it is unknown which values of different benchmarks are of one boot, and so is their spread together"

Compared = tuple[Observations, Contrast]


@dataclass(frozen=True)
class Overall:
    """The result for the workload. The ratio is of speeds: above 1 is better whatever the benchmarks' directions."""

    benchmarks: frozenset[str]
    """Names of the benchmarks that are in it."""
    quantity: Quantity
    estimate: Estimate | None
    reason: str = ""
    """The reason for a missing estimate or interval."""


def overall(compared: Sequence[Compared], limits: EstimateLimits) -> Overall:
    """Make one comparison from those of several benchmarks.

    Counts are left out if there are speeds, and so are benchmarks without a direction, and parts of what others measure
    if there are others.
    """
    directed = [(observed, contrast) for observed, contrast in compared if observed.direction is not None]
    usable = [(observed, contrast) for observed, contrast in directed if not observed.is_part] or directed
    quantity: Quantity = "count" if usable and all(observed.quantity == "count" for observed, _ in usable) else "speed"
    usable = [(observed, contrast) for observed, contrast in usable if observed.quantity == quantity]
    if not usable:
        return Overall(frozenset(), quantity, None, NO_DIRECTION if compared else NOT_IN_ALL)
    if len(usable) == 1:
        return _only_benchmark(usable[0], quantity, limits)
    if paired := [(observed, contrast) for observed, contrast in usable if isinstance(contrast, Paired)]:
        return _average_blocks(paired, quantity, limits)
    unpaired = [(observed, contrast) for observed, contrast in usable if isinstance(contrast, Unpaired)]
    if len(unpaired) == len(usable) and all(contrast.together for _, contrast in unpaired):
        return _average_boots(unpaired, quantity, limits)
    mean = sum(_sign(observed) * log_ratio(contrast).mean for observed, contrast in usable) / len(usable)
    units = min(log_ratio(contrast).units for _, contrast in usable)
    estimate = estimate_ratio(LogRatio(mean, None, None, units), "welch", limits)
    return Overall(_names(usable), quantity, estimate, NOT_TOGETHER if units > 1 else "")


def _only_benchmark(compared: Compared, quantity: Quantity, limits: EstimateLimits) -> Overall:
    """Return the only benchmark, as a speed."""
    observed, contrast = compared
    if _sign(observed) == 1:
        return Overall(frozenset({observed.benchmark}), quantity, estimate_contrast(contrast, limits))
    return Overall(frozenset({observed.benchmark}), quantity, estimate_contrast(_exchange_sides(contrast), limits))


def _exchange_sides(contrast: Contrast) -> Contrast:
    """Return the contrast with variant and baseline exchanged."""
    if isinstance(contrast, Unpaired) and contrast.together:
        contrast = replace(contrast, together=(contrast.together[1], contrast.together[0]))
    return replace(contrast, variant=contrast.baseline, baseline=contrast.variant)  # type: ignore[arg-type]


def _average_blocks(
    paired: Sequence[tuple[Observations, Paired]], quantity: Quantity, limits: EstimateLimits
) -> Overall:
    """Return the mean over benchmarks block by block, of those that have every block."""
    blocks = _union_labels([contrast.blocks for _, contrast in paired])
    full = [(observed, contrast) for observed, contrast in paired if len(contrast.blocks) == len(blocks)]
    if not full:
        return Overall(frozenset(), quantity, None, NOT_IN_ALL)
    sorted_by_block = [np.argsort(contrast.blocks, kind="stable") for _, contrast in full]
    speeds: Values = np.mean(
        [
            _sign(observed) * (contrast.variant - contrast.baseline)[order]
            for (observed, contrast), order in zip(full, sorted_by_block, strict=True)
        ],
        axis=0,
    )
    first, order = full[0][1], sorted_by_block[0]
    layouts = None if first.layouts is None else first.layouts[order]
    mean = Paired(speeds, np.zeros_like(speeds), first.blocks[order], layouts, 0, _rounding(full))
    return Overall(_names(full), quantity, estimate_contrast(mean, limits))


def _average_boots(
    unpaired: Sequence[tuple[Observations, Unpaired]], quantity: Quantity, limits: EstimateLimits
) -> Overall:
    """Return the mean over benchmarks boot by boot, of those that were measured in every boot; then Welch."""
    by_boot = {
        observed.benchmark: (
            _average_by_boot(_sign(observed) * contrast.variant, contrast.together[0]),
            _average_by_boot(_sign(observed) * contrast.baseline, contrast.together[1]),
        )
        for observed, contrast in unpaired
        if contrast.together
    }
    ours, theirs = (_union_labels([boots[side][0] for boots in by_boot.values()]) for side in (0, 1))
    full = {
        name: boots
        for name, boots in by_boot.items()
        if len(boots[0][0]) == len(ours) and len(boots[1][0]) == len(theirs)
    }
    if not full:
        return Overall(frozenset(), quantity, None, "no benchmark was measured in all boots of both")
    variant, baseline = (np.mean([boots[side][1] for boots in full.values()], axis=0) for side in (0, 1))
    rounding = _rounding([(observed, contrast) for observed, contrast in unpaired if observed.benchmark in full])
    mean = Unpaired(variant, baseline, (ours, theirs), rounding)
    return Overall(frozenset(full), quantity, estimate_contrast(mean, limits))


def _average_by_boot(logs: Values, boots: Labels) -> tuple[Labels, Values]:
    """Return the boots in order, and the mean of each."""
    return np.unique(boots), cluster_means(logs, boots)


def _union_labels(by_benchmark: Sequence[Labels]) -> Labels:
    """Return the blocks or boots of any of the benchmarks."""
    if all(np.array_equal(by_benchmark[0], labels) for labels in by_benchmark):
        return by_benchmark[0]
    return np.unique(np.concatenate(by_benchmark))


def _rounding(full: Sequence[Compared]) -> float:
    return float(np.mean([contrast.rounding for _, contrast in full]))


def _sign(observed: Observations) -> int:
    """Return the factor that turns the logarithm of a ratio of values into that of a ratio of speeds."""
    return 1 if observed.direction == "higher" else -1


def _names(compared: Sequence[Compared]) -> frozenset[str]:
    return frozenset(observed.benchmark for observed, _ in compared)
