"""The limits of data, whatever their statistics say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from kdyno.base.arrays import Labels, Values
from kdyno.base.measurement import Direction
from kdyno.base.text import format_list, format_signed, percent
from kdyno.judge.foreign.gathered import Gathered
from kdyno.judge.stats.compare import FEW, Comparison
from kdyno.judge.stats.diagnostics.tables import Analysis
from kdyno.judge.stats.estimate import exp
from kdyno.judge.stats.logratio import MOST_VARIATION
from kdyno.judge.stats.observations import Observations, ReplicateSample, Summary

COLD_P = 1e-4
"""The probability that a first value among equally distributed normal ones is called cold."""
LEAST_COLD = 0.02
"""Its least distance, on the logarithmic scale; less may be rounding."""
COLD_SHARE = 4
"""At most one value in so many is cold; a variant with fewer values has at most one."""


def caveats(
    gathered: Gathered, baseline: str, analyses: Sequence[Analysis], comparisons: Sequence[Comparison], alpha: float
) -> tuple[str, ...]:
    """Return everything that a reader must know of the data, one sentence for each fact."""
    by_reading = _judged_by_reading(gathered, baseline, comparisons)
    cold = _find_cold(gathered)
    known = {found.observed.benchmark for found in cold}
    return (
        *_boots(gathered),
        *gathered.confounded,
        *_layout(gathered),
        *_days(gathered, baseline),
        *_cold_note(gathered, cold),
        *_drift([analysis for analysis in analyses if analysis.benchmark not in known], len(analyses), alpha),
        *_note_readings(by_reading, one_boot=bool(gathered.boots)),
        *_few(gathered, by_reading),
        *_equal(gathered),
        *_note_wide_spreads(gathered),
        *_note_dropped_blocks(comparisons),
    )


def _boots(gathered: Gathered) -> Iterator[str]:
    if gathered.boots:
        known = "boot" in gathered.columns
        more = "; a column `boot` says more" if gathered.columns and not (gathered.published or known) else ""
        yield (
            f"replicates may be of one boot: {gathered.boots}. What changes from boot to boot isn't in the interval, "
            f"and verdicts are about these boots{more}"
        )


def _layout(gathered: Gathered) -> Iterator[str]:
    if not gathered.layouts_sampled:
        yield "layout wasn't sampled: relinking alone can make a difference as large as some of these"


def _days(gathered: Gathered, baseline: str) -> Iterator[str]:
    apart: dict[str, list[str]] = {}
    for observed in gathered.observations:
        days = gathered.days.get(observed.benchmark, {})
        for variant in observed.groups:
            if variant == baseline or baseline not in observed.groups:
                continue
            if days and not days[variant] & days[baseline]:
                caveat = f"{variant} was measured on other days than {baseline}"
            elif _one_after_other(observed, variant, baseline):
                caveat = f"{variant} and {baseline} weren't interleaved, but one after the other"
            elif _rows_apart(gathered, observed, variant, baseline):
                caveat = (
                    f"the rows of {variant} and {baseline} are one after the other: if the rows are in the order of "
                    "measuring, they weren't interleaved"
                )
            else:
                continue
            apart.setdefault(caveat, []).append(observed.benchmark)
    for caveat, benchmarks in apart.items():
        names = "" if len(benchmarks) == len(gathered.observations) else f" ({format_list(benchmarks)})"
        yield f"{caveat}{names}; whatever changed meanwhile looks like an effect"


def _rows_apart(gathered: Gathered, observed: Observations, variant: str, baseline: str) -> bool:
    """Return whether two variants take turns nowhere in the file, and only the rows show the order in which they
    came.
    """
    ours, theirs = observed.sample(variant), observed.sample(baseline)
    row_ranges = gathered.row_ranges.get(observed.benchmark, {})
    if ours is None or theirs is None or not row_ranges or ours.blocks is not None or ours.order is not None:
        return False
    (first, last), (other_first, other_last) = row_ranges[variant], row_ranges[baseline]
    several = last > first and other_last > other_first
    return several and (last < other_first or other_last < first)


def _one_after_other(observed: Observations, variant: str, baseline: str) -> bool:
    orders: list[Labels] = []
    for name in (variant, baseline):
        sample = observed.sample(name)
        if sample is None or sample.order is None or len(sample.order) < 2:
            return False
        orders.append(sample.order)
    ours, theirs = orders
    return bool(ours.max() < theirs.min() or theirs.max() < ours.min())


@dataclass(frozen=True)
class _Cold:
    """The first values of a variant, which are far from the others."""

    observed: Observations
    variant: str
    count: int
    excess: float
    """The distance of their mean from that of the others, on the logarithmic scale."""


def _find_cold(gathered: Gathered) -> list[_Cold]:
    return [
        _Cold(observed, variant, *found)
        for observed in gathered.observations
        for variant, group in observed.groups.items()
        if isinstance(group, ReplicateSample) and (found := count_cold(group, observed.direction))
    ]


def _cold_note(gathered: Gathered, cold: Sequence[_Cold]) -> Iterator[str]:
    if cold:
        is_one_benchmark = len(gathered.observations) == 1
        is_one_value = all(found.count == 1 for found in cold)
        names: list[str] = []
        for found in cold:
            name = found.variant if is_one_benchmark else f"{found.observed.benchmark} of {found.variant}"
            count = "" if is_one_value else f"{found.count} of them, "
            names.append(f"{name} ({count}{format_signed(exp(found.excess) - 1)} %)")
        certain = not gathered.row_ranges or all(
            group.order is not None for found in cold if (group := found.observed.sample(found.variant))
        )
        condition = "" if certain else ", if the rows are in the order of measuring"
        subject = "first value is" if is_one_value else "first values are"
        owner = "its" if is_one_value else "their"
        yield (
            f"the {subject} far from all others of {owner} variant{condition}: {format_list(names)}; if a cold cache "
            "explains it, measure again after a run that isn't counted (hyperfine --warmup 1), or leave the first "
            "values out"
        )


def count_cold(sample: ReplicateSample, direction: Direction | None) -> tuple[int, float] | None:
    """Return how many of the first measured values are cold, and the distance of their mean from that of the others on
    the logarithmic scale; None: none is cold.

    Each of them is worse than the mean of the others by far more than the others differ, by the t-test of one value
    against a group. The largest number for which that holds is the right one: fewer would leave a cold value among the
    others.
    """
    logs = np.log(sample.values if sample.order is None else sample.values[np.argsort(sample.order, kind="stable")])
    if len(logs) < 3:
        return None
    counts = np.arange(max(1, len(logs) // COLD_SHARE), 0, -1)
    means, sds = _of_the_others(logs, counts)
    least, most = np.minimum.accumulate(logs)[counts - 1] - means, np.maximum.accumulate(logs)[counts - 1] - means
    worse = {"lower": least, "higher": -most, None: np.where(logs[0] > means, least, -most)}[direction]
    n = len(logs) - counts
    spreads = sds * np.sqrt(1 + 1 / n)
    # Student's quantiles take long for millions of values: those of the normal distribution are smaller.
    for place in np.flatnonzero(worse > np.maximum(LEAST_COLD, -special.ndtri(COLD_P) * spreads)).tolist():
        if worse[place] > -special.stdtrit(n[place] - 1, COLD_P) * spreads[place]:
            count = int(counts[place])
            return count, float(logs[:count].mean() - means[place])
    return None


def _of_the_others(logs: Values, counts: Labels) -> tuple[Values, Values]:
    """Return the means, and the standard deviations, of all values but the first `counts`, each of which leaves two."""
    middle = logs.mean()
    values = logs - middle
    sums, squares = np.cumsum(values[::-1])[::-1][counts], np.cumsum(np.square(values[::-1]))[::-1][counts]
    n = len(logs) - counts
    return middle + sums / n, np.sqrt(np.maximum(squares - sums**2 / n, 0) / (n - 1))


def _drift(analyses: Sequence[Analysis], benchmarks: int, alpha: float) -> Iterator[str]:
    """Yield trends over the order of measuring, at alpha over all benchmarks together (Bonferroni)."""
    for analysis in analyses:
        checks = analysis.assumptions
        if checks is None or checks.drift is None or checks.drift_p is None:
            continue
        if checks.drift_p * benchmarks < alpha:
            yield (
                f"{analysis.benchmark} drifts by {format_signed(checks.drift)} % in 100 measurements "
                f"(p = {checks.drift_p:.2g}): values that were measured together must be compared together"
            )


def _judged_by_reading(gathered: Gathered, baseline: str, comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Return notes on the benchmarks whose verdicts boots alone would not have given: those rest on more values than
    there are boots.
    """
    boots = {
        (observed.benchmark, variant): min(len(ours.values), len(theirs.values))
        for observed in gathered.observations
        if observed.readings is not None and (theirs := observed.sample(baseline))
        for variant in observed.groups
        if (ours := observed.sample(variant))
    }
    return tuple(
        dict.fromkeys(
            comparison.benchmark
            for comparison in comparisons
            if comparison.estimate
            and comparison.estimate.units > boots.get((comparison.benchmark, comparison.variant), math.inf)
        )
    )


def _note_readings(benchmarks: Sequence[str], *, one_boot: bool) -> Iterator[str]:
    if benchmarks:
        meaning = "" if one_boot else ", which says something about these boots"
        yield (
            f"boots are too few to decide about kernels ({format_list(list(benchmarks))}): the single readings were "
            f"judged instead of a median for each boot{meaning}"
        )


def _few(gathered: Gathered, by_reading: Sequence[str]) -> Iterator[str]:
    boots = any(observed.readings is not None for observed in gathered.observations)
    sizes = [
        (group.n if isinstance(group, Summary) else len(group.values), variant, observed.benchmark)
        for observed in gathered.observations
        if observed.benchmark not in by_reading
        for variant, group in observed.groups.items()
    ]
    few = [size for size in sizes if size[0] < FEW]
    if few:
        n, variant, benchmark = min(few)
        values = ("boot" if boots else "value") + ("" if n == 1 else "s")
        others = f", and {len(few) - 1} more of these groups are smaller than {FEW}" if len(few) > 1 else ""
        yield f"{variant} has {n} {values} of {benchmark}{others}: so few hardly know their own spread"


def _equal(gathered: Gathered) -> Iterator[str]:
    """Yield notes on groups without any spread, of numbers that were rounded to a few digits; exact counts may well
    agree.
    """
    equal = [
        (observed.benchmark, variant, group.values[0])
        for observed in gathered.observations
        for variant, group in observed.groups.items()
        if observed.step and isinstance(group, ReplicateSample) and len(group.values) > 1 and np.ptp(group.values) == 0
    ]
    if equal:
        benchmark, variant, value = equal[0]
        others = f"; so do those of {len(equal) - 1} more groups" if len(equal) > 1 else ""
        yield (
            f"all values of {benchmark} agree exactly in {variant} ({value:g}){others}: rounding hides their spread, "
            "and intervals are at least as wide as what it leaves open"
        )


def _note_wide_spreads(gathered: Gathered) -> Iterator[str]:
    for observed in gathered.observations:
        for variant, group in observed.groups.items():
            if isinstance(group, Summary) and group.sd > MOST_VARIATION * group.mean > 0:
                yield (
                    f"{observed.benchmark}, {variant}: the standard deviation is {percent(group.sd / group.mean)} % of "
                    "the mean; such values are hardly normal, and a mean tells little of them"
                )


def _note_dropped_blocks(comparisons: Sequence[Comparison]) -> Iterator[str]:
    for variant in dict.fromkeys(comparison.variant for comparison in comparisons):
        incomplete = [comparison for comparison in comparisons if comparison.variant == variant and comparison.dropped]
        if incomplete:
            most = max(comparison.dropped for comparison in incomplete)
            yield (
                f"{most} {'block' if most == 1 else 'blocks'} without {variant} or without the baseline: dropped for "
                f"this pair ({format_list([comparison.benchmark for comparison in incomplete])})"
            )
