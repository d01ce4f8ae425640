"""A variant and the baseline: the values of both that are compared."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kdyno.base.arrays import Labels, Values
from kdyno.judge.stats import bootstrap, logratio
from kdyno.judge.stats.estimate import Estimate, EstimateLimits, Method, estimate_ratio, exp
from kdyno.judge.stats.logratio import LogRatio
from kdyno.judge.stats.observations import Observations, ReplicateSample, Summary


@dataclass(frozen=True)
class Paired:
    """Logarithms of both values in each block that has both; all of shape (n,), n >= 1, in one order."""

    variant: Values
    baseline: Values
    blocks: Labels
    layouts: Labels | None
    """The layout that both had in each block; None if layout wasn't sampled."""
    dropped: int
    """Blocks that have the value of only one of the two."""
    rounding: float = 0.0
    """The error that rounding of the values may have added to the mean of ln(variant / baseline)."""


@dataclass(frozen=True)
class Unpaired:
    """Logarithms of independent values, shapes (n,) and (m,), each >= 1; means over layouts if those are known."""

    variant: Values
    baseline: Values
    together: tuple[Labels, Labels] | None
    """For the variant's values and the baseline's: values measured together have one label in all benchmarks, a boot or
    a layout. None if unknown.
    """
    rounding: float = 0.0


@dataclass(frozen=True)
class PublishedSummaries:
    """Two summaries."""

    variant: Summary
    baseline: Summary
    rounding: float = 0.0


Contrast = Paired | Unpaired | PublishedSummaries


def contrast_of(observed: Observations, variant: str, baseline: str) -> Contrast | None:
    """Return the comparable values of two variants; None if one has no value, or no block has both."""
    ours, theirs = observed.sample(variant), observed.sample(baseline)
    if ours is not None and theirs is not None:
        return _sample_contrast(ours, theirs, observed.step)
    our_summary, their_summary = observed.summary(variant), observed.summary(baseline)
    if our_summary is None or their_summary is None:
        return None
    rounding = sum(_hidden(summary.mean, summary.sd, observed.step) for summary in (our_summary, their_summary))
    return PublishedSummaries(our_summary, their_summary, rounding)


def log_ratio(contrast: Contrast) -> LogRatio:
    """Return the mean of ln(variant / baseline) and its error, after the design."""
    return replace(_moments(contrast), rounding=contrast.rounding)


def _moments(contrast: Contrast) -> LogRatio:
    if isinstance(contrast, PublishedSummaries):
        return logratio.log_ratio_of_summaries(contrast.variant, contrast.baseline)
    if isinstance(contrast, Unpaired):
        return logratio.log_ratio_of_groups(contrast.variant, contrast.baseline)
    differences = contrast.variant - contrast.baseline
    if contrast.layouts is None:
        return logratio.log_ratio_of_differences(differences)
    return logratio.log_ratio_of_layouts(differences, contrast.layouts)


def estimate_contrast(contrast: Contrast, limits: EstimateLimits) -> Estimate:
    """Estimate the ratio of a contrast."""
    ratio = log_ratio(contrast)
    if isinstance(contrast, PublishedSummaries):
        return estimate_ratio(ratio, "welch", limits)
    if isinstance(contrast, Unpaired):
        ends = bootstrap.group_interval(contrast.variant, contrast.baseline, limits.confidence) if ratio.error else None
        return estimate_ratio(ratio, "welch", limits, bootstrap=ends)
    differences = contrast.variant - contrast.baseline
    ends = bootstrap.difference_interval(differences, contrast.layouts, limits.confidence) if ratio.error else None
    method: Method = "paired" if contrast.layouts is None else "layouts"
    return estimate_ratio(ratio, method, limits, len(contrast.blocks), ends)


def middle(contrast: Contrast) -> tuple[float, float]:
    """Return the typical values of the baseline and of the variant, in the benchmark's unit: geometric means, or the
    published means.
    """
    if isinstance(contrast, PublishedSummaries):
        return contrast.baseline.mean, contrast.variant.mean
    return exp(float(np.mean(contrast.baseline))), exp(float(np.mean(contrast.variant)))


def _sample_contrast(ours: ReplicateSample, theirs: ReplicateSample, step: float) -> Paired | Unpaired | None:
    if ours.blocks is None or theirs.blocks is None:
        return _unpaired_contrast(ours, theirs, step)
    blocks, our_index, their_index = _common(ours.blocks, theirs.blocks)
    if not len(blocks):
        return None
    layouts = None
    if ours.clusters is not None and theirs.clusters is not None:
        layouts = ours.clusters[our_index]
        if not np.array_equal(layouts, theirs.clusters[their_index]):
            return _unpaired_contrast(ours, theirs, step)
    our_values, their_values = ours.values[our_index], theirs.values[their_index]
    return Paired(
        variant=np.log(our_values),
        baseline=np.log(their_values),
        blocks=blocks,
        layouts=layouts,
        dropped=len(ours.blocks) + len(theirs.blocks) - 2 * len(blocks),
        rounding=_hidden_in(our_values, step) + _hidden_in(their_values, step),
    )


def _unpaired_contrast(ours: ReplicateSample, theirs: ReplicateSample, step: float) -> Unpaired:
    (our_logs, our_labels), (their_logs, their_labels) = _independent(ours), _independent(theirs)
    known = our_labels is not None and their_labels is not None
    return Unpaired(
        variant=our_logs,
        baseline=their_logs,
        together=(our_labels, their_labels) if known else None,  # type: ignore[arg-type]
        rounding=_hidden_in(ours.values, step) + _hidden_in(theirs.values, step),
    )


def _common(ours: Labels, theirs: Labels) -> tuple[Labels, slice | Labels, slice | Labels]:
    """Return the blocks that both have, and their positions in either."""
    if np.array_equal(ours, theirs):  # the usual case; sorting ten million labels takes seconds
        return ours, slice(None), slice(None)
    blocks, our_index, their_index = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    return blocks, our_index, their_index


def _independent(sample: ReplicateSample) -> tuple[Values, Labels | None]:
    """Return the logarithms of independent values, and the label of those that each was measured together with."""
    logs: Values = np.log(sample.values)
    if sample.clusters is None:
        return logs, sample.boots
    return logratio.cluster_means(logs, sample.clusters), np.unique(sample.clusters)


def _hidden_in(values: Values, step: float) -> float:
    if not step:
        return 0.0
    return _hidden(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, step)


def _hidden(mean: float, sd: float, step: float) -> float:
    """Return how far rounding may move the logarithm of a mean: rounding errors cancel out only if values spread."""
    return step / 2 / mean if sd < step / 2 else 0.0
