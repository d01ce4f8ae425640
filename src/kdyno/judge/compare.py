"""Comparing every variant with the baseline, benchmark by benchmark and over the whole workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kdyno.frozen import Frozen
from kdyno.judge import absence, logratio
from kdyno.judge.contrast import Contrast, Paired, Published, contrast_of, estimated, log_ratio, middle
from kdyno.judge.estimate import CONFIDENCE, Estimate, Limits, estimate_ratio
from kdyno.judge.logratio import MOST_VARIATION, LogRatio
from kdyno.judge.multiplicity import adjusted
from kdyno.judge.observations import Labels, Observations, Values, require_usable
from kdyno.judge.verdict import NO_SPREAD, Verdict, decide, sentence
from kdyno.measurement import Correction, Direction
from kdyno.text import percent

Why = Callable[[str, Sequence[str]], str]
"""Says why a benchmark of (baseline, variant) has no comparison."""


class Judged(Frozen):
    """A variant against the baseline; without an estimate and a verdict when nothing could be compared."""

    variant: str
    estimate: Estimate | None = None
    p_adjusted: float | None = None
    """p, adjusted for all comparisons of its kind in the run."""
    verdict: Verdict | None = None
    reason: str = ""
    """Why there is no estimate, or why the verdict is undecided without regard to it."""
    sentence: str = ""


class Comparison(Judged):
    """One benchmark: the ratio is the variant's value over the baseline's."""

    benchmark: str
    direction: Direction
    baseline_value: float | None = None
    """Geometric means over what was compared, in the benchmark's unit (of a summary its mean): their ratio is the
    estimate's, unless layouts have different numbers of blocks."""
    variant_value: float | None = None
    dropped: int = 0
    """Blocks left out because one of the two has no value in them."""


class GeometricMean(Judged):
    """The whole workload: the ratio is of speeds, so that above 1 is faster whatever the benchmarks' directions."""

    benchmarks: int = 0
    left_out: tuple[str, ...] = ()
    """Benchmarks without a value in every block compared, or that could not be compared."""
    independent: bool = False
    """The values are not in blocks, and the interval takes the benchmarks to be independent of one another."""


class Judgement(Frozen):
    """All verdicts of a run."""

    comparisons: tuple[Comparison, ...]
    """By variant in the order given, then by benchmark."""
    geometric_means: tuple[GeometricMean, ...]


def judge(
    observations: Sequence[Observations],
    variants: Sequence[str],
    baseline: str,
    *,
    margin: float,
    alpha: float,
    confidence: float = CONFIDENCE,
    correction: Correction = "holm",
    why: Why | None = None,
) -> Judgement:
    """Judge all variants against the baseline. `margin`, `alpha` and `confidence` are fractions.

    A run that may stop early passes the nominal level of its look as `alpha` and 1 - level as `confidence`. `why`
    explains why a benchmark has no comparison; without it the explanation comes from the values alone.
    Raises UnusableSample, UnusableSummary and BlockTwice.
    """
    for observed in observations:
        require_usable(observed)
    limits = Limits(margin, alpha, confidence)
    comparisons: list[Comparison] = []
    means: list[GeometricMean] = []
    for variant in variants:
        if variant == baseline:
            continue
        contrasts = [contrast_of(observed, variant, baseline) for observed in observations]
        comparisons += [
            _compared(observed, contrast, (baseline, variant), limits, why)
            for observed, contrast in zip(observations, contrasts, strict=True)
        ]
        means.append(_geometric_mean(variant, observations, contrasts, limits))
    texts = {observed.benchmark: observed.description or observed.benchmark for observed in observations}
    return Judgement(
        comparisons=tuple(
            comparison.model_copy(
                update=_decided(comparison, p, comparison.direction, texts[comparison.benchmark], limits)
            )
            for comparison, p in zip(comparisons, _adjusted(comparisons, correction), strict=True)
        ),
        geometric_means=tuple(
            mean.model_copy(update=_decided(mean, p, "higher", "speed over all benchmarks", limits))
            for mean, p in zip(means, _adjusted(means, correction), strict=True)
        ),
    )


def _compared(
    observed: Observations, contrast: Contrast | None, names: tuple[str, str], limits: Limits, why: Why | None
) -> Comparison:
    blank = Comparison(variant=names[1], benchmark=observed.benchmark, direction=observed.direction)
    if contrast is None:
        reason = why(observed.benchmark, names) if why else absence.of_values(observed, names)
        return blank.model_copy(update={"reason": reason, "dropped": _in_one_only(observed, names)})
    baseline_value, variant_value = middle(contrast)
    return blank.model_copy(
        update={
            "estimate": estimated(contrast, limits),
            "baseline_value": baseline_value,
            "variant_value": variant_value,
            "dropped": contrast.dropped if isinstance(contrast, Paired) else 0,
            "reason": _distrusted(contrast),
        }
    )


def _in_one_only(observed: Observations, names: tuple[str, str]) -> int:
    """Blocks of two variants that share none."""
    samples = [observed.sample(name) for name in names]
    return sum(len(sample.blocks) for sample in samples if sample is not None and sample.blocks is not None)


def _distrusted(contrast: Contrast) -> str:
    """Why a contrast can't be judged whatever its numbers say; empty if it can."""
    if not isinstance(contrast, Published):
        return ""
    widest = max(summary.sd / summary.mean for summary in (contrast.variant, contrast.baseline))
    if widest <= MOST_VARIATION:
        return ""
    return f"the standard deviation is {percent(widest)} % of the mean: a ratio needs the single values"


def _geometric_mean(
    variant: str, observations: Sequence[Observations], contrasts: Sequence[Contrast | None], limits: Limits
) -> GeometricMean:
    """Mean over benchmarks of the logarithm of the speed ratio: block by block, and then as any other comparison."""
    compared = [
        (observed, contrast) for observed, contrast in zip(observations, contrasts, strict=True) if contrast is not None
    ]
    paired = [(observed, contrast) for observed, contrast in compared if isinstance(contrast, Paired)]
    blocks = _all_blocks([contrast.blocks for _, contrast in paired])
    full = [(observed, contrast) for observed, contrast in paired if len(contrast.blocks) == len(blocks)]
    if len(paired) == len(compared):
        names, ratio = {observed.benchmark for observed, _ in full}, _blockwise(full, limits)
    else:
        usable = [(observed, contrast) for observed, contrast in compared if not _distrusted(contrast)]
        names, ratio = {observed.benchmark for observed, _ in usable}, _independent(usable, limits)
    mean = GeometricMean(
        variant=variant,
        benchmarks=len(names),
        left_out=tuple(observed.benchmark for observed in observations if observed.benchmark not in names),
        independent=len(paired) < len(compared),
        estimate=ratio,
    )
    return mean if ratio else mean.model_copy(update={"reason": "no benchmark was measured in all blocks by both"})


def _blockwise(full: Sequence[tuple[Observations, Paired]], limits: Limits) -> Estimate | None:
    if not full:
        return None
    sorted_by_block = [np.argsort(contrast.blocks, kind="stable") for _, contrast in full]
    speeds: Values = np.mean(
        [
            _speed(observed) * (contrast.variant - contrast.baseline)[order]
            for (observed, contrast), order in zip(full, sorted_by_block, strict=True)
        ],
        axis=0,
    )
    first, order = full[0][1], sorted_by_block[0]
    layouts = None if first.layouts is None else first.layouts[order]
    return estimated(Paired(speeds, np.zeros_like(speeds), first.blocks[order], layouts, 0), limits)


def _all_blocks(by_benchmark: Sequence[Labels]) -> Labels:
    """The blocks of any of the benchmarks."""
    if by_benchmark and all(np.array_equal(by_benchmark[0], blocks) for blocks in by_benchmark):
        return by_benchmark[0]
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *by_benchmark]))


def _independent(usable: Sequence[tuple[Observations, Contrast]], limits: Limits) -> Estimate | None:
    if not usable:
        return None
    parts = []
    for observed, contrast in usable:
        ratio = log_ratio(contrast)
        parts.append(LogRatio(_speed(observed) * ratio.mean, ratio.error, ratio.df, ratio.units))
    return estimate_ratio(logratio.of_independent(parts), "welch", limits)


def _speed(observed: Observations) -> int:
    """What turns the logarithm of a ratio of values into that of a ratio of speeds."""
    return 1 if observed.direction == "higher" else -1


def _adjusted(judged: Sequence[Judged], correction: Correction) -> list[float | None]:
    """Adjust the p-values of all that have one, as one family."""
    return adjusted([result.estimate.p if result.estimate else None for result in judged], correction)


def _decided(
    judged: Judged, p_adjusted: float | None, direction: Direction, what: str, limits: Limits
) -> dict[str, Any]:
    """What the verdict adds to an estimate; nothing where there is none."""
    estimate = judged.estimate
    if estimate is None:
        return {}
    reason = judged.reason or (NO_SPREAD[estimate.method] if estimate.low is None else "")
    verdict = "undecided" if reason else decide(estimate, p_adjusted, direction, limits.margin, limits.alpha)
    return {
        "p_adjusted": p_adjusted,
        "verdict": verdict,
        "reason": reason,
        "sentence": sentence(what, estimate, verdict, limits.margin),
    }
