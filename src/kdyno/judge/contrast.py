"""A variant beside the baseline: what of their values is compared, and how."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdyno.judge import bootstrap, logratio
from kdyno.judge.estimate import Estimate, Limits, Method, estimate_ratio, exp
from kdyno.judge.logratio import LogRatio
from kdyno.judge.observations import Labels, Observations, Sample, Summary, Values


@dataclass(frozen=True)
class Paired:
    """Logarithms of both values in each block that has both; all of shape (n,), n >= 1, in one order."""

    variant: Values
    baseline: Values
    blocks: Labels
    layouts: Labels | None
    """The layout that both had in each block; None where layout wasn't sampled."""
    dropped: int
    """Blocks that have the value of only one of the two."""


@dataclass(frozen=True)
class Unpaired:
    """Logarithms of independent values, shapes (n,) and (m,), each >= 1; means over layouts where those are known."""

    variant: Values
    baseline: Values


@dataclass(frozen=True)
class Published:
    """Two summaries."""

    variant: Summary
    baseline: Summary


Contrast = Paired | Unpaired | Published


def contrast_of(observed: Observations, variant: str, baseline: str) -> Contrast | None:
    """Return what can be compared of two variants; None if one has no value, or no block has both."""
    ours, theirs = observed.sample(variant), observed.sample(baseline)
    if ours is not None and theirs is not None:
        return _of_samples(ours, theirs)
    our_summary, their_summary = observed.summary(variant), observed.summary(baseline)
    return Published(our_summary, their_summary) if our_summary is not None and their_summary is not None else None


def log_ratio(contrast: Contrast) -> LogRatio:
    """The mean of ln(variant / baseline) and its error, after the design."""
    if isinstance(contrast, Published):
        return logratio.of_summaries(contrast.variant, contrast.baseline)
    if isinstance(contrast, Unpaired):
        return logratio.of_groups(contrast.variant, contrast.baseline)
    differences = contrast.variant - contrast.baseline
    if contrast.layouts is None:
        return logratio.of_differences(differences)
    return logratio.of_layouts(differences, contrast.layouts)


def estimated(contrast: Contrast, limits: Limits) -> Estimate:
    """Estimate the ratio of a contrast."""
    ratio = log_ratio(contrast)
    if isinstance(contrast, Published):
        return estimate_ratio(ratio, "welch", limits)
    if isinstance(contrast, Unpaired):
        ends = bootstrap.of_groups(contrast.variant, contrast.baseline, limits.confidence) if ratio.error else None
        return estimate_ratio(ratio, "welch", limits, bootstrap=ends)
    differences = contrast.variant - contrast.baseline
    ends = bootstrap.of_differences(differences, contrast.layouts, limits.confidence) if ratio.error else None
    method: Method = "paired" if contrast.layouts is None else "layouts"
    return estimate_ratio(ratio, method, limits, len(contrast.blocks), ends)


def middle(contrast: Contrast) -> tuple[float, float]:
    """What is typical of the baseline and of the variant, in the benchmark's unit: geometric means, or the means
    that were published."""
    if isinstance(contrast, Published):
        return contrast.baseline.mean, contrast.variant.mean
    return exp(float(np.mean(contrast.baseline))), exp(float(np.mean(contrast.variant)))


def _of_samples(ours: Sample, theirs: Sample) -> Paired | Unpaired | None:
    if ours.blocks is None or theirs.blocks is None:
        return Unpaired(_independent(ours), _independent(theirs))
    blocks, our_index, their_index = _common(ours.blocks, theirs.blocks)
    if not len(blocks):
        return None
    layouts = None
    if ours.clusters is not None and theirs.clusters is not None:
        layouts = ours.clusters[our_index]
        if not np.array_equal(layouts, theirs.clusters[their_index]):
            return Unpaired(_independent(ours), _independent(theirs))
    return Paired(
        variant=np.log(ours.values[our_index]),
        baseline=np.log(theirs.values[their_index]),
        blocks=blocks,
        layouts=layouts,
        dropped=len(ours.blocks) + len(theirs.blocks) - 2 * len(blocks),
    )


def _common(ours: Labels, theirs: Labels) -> tuple[Labels, slice | Labels, slice | Labels]:
    """The blocks that both have, and where they are in either."""
    if np.array_equal(ours, theirs):  # as they mostly are; sorting ten million labels takes seconds
        return ours, slice(None), slice(None)
    blocks, our_index, their_index = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    return blocks, our_index, their_index


def _independent(sample: Sample) -> Values:
    logs: Values = np.log(sample.values)
    return logs if sample.clusters is None else logratio.cluster_means(logs, sample.clusters)
