"""The values of one benchmark as a table of variants and blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kdyno.base.arrays import Labels, Values
from kdyno.judge.stats.logratio import cluster_means
from kdyno.judge.stats.observations import Observations, ReplicateSample

MOST = 100_000
"""The most values; tables of blocks of more take longer than anybody waits for them."""


@dataclass(frozen=True)
class Blocked:
    """Logarithms of all values of a benchmark, and which variant and block each belongs to; shape (n,)."""

    logs: Values
    variants: Labels
    blocks: Labels
    """Both from 0, without gaps."""
    names: tuple[str, ...]


def average_layouts(observed: Observations) -> Observations:
    """Return, if layout was sampled, one value for each variant and layout, the geometric mean over its boots, with the
    layout as its block: boots of one layout are not replicates of each other. Otherwise return the observations
    unchanged.
    """
    groups: dict[str, ReplicateSample] = {}
    for name in observed.groups:
        sample = observed.sample(name)
        if sample is None or sample.clusters is None:
            return observed
        labels = np.unique(sample.clusters)
        groups[name] = ReplicateSample(
            values=np.exp(cluster_means(np.log(sample.values), sample.clusters)),
            blocks=None if sample.blocks is None else labels,
        )
    return replace(observed, groups=groups)


def block_values(observed: Observations) -> Blocked | None:
    """Return the values of a benchmark that is in blocks; None if any are not, or if there are more than `MOST`."""
    samples = {name: sample for name in observed.groups if (sample := observed.sample(name))}
    blocks = [sample.blocks for sample in samples.values() if sample.blocks is not None]
    if not samples or len(blocks) < len(samples) or sum(map(len, blocks)) > MOST:
        return None
    return Blocked(
        logs=np.log(np.concatenate([sample.values for sample in samples.values()])),
        variants=np.repeat(np.arange(len(samples)), [len(sample.values) for sample in samples.values()]),
        blocks=np.unique(np.concatenate(blocks), return_inverse=True)[1].astype(np.int64),
        names=tuple(samples),
    )


def complete(table: Blocked) -> Blocked:
    """Return only the blocks that have every variant."""
    full = np.flatnonzero(np.bincount(table.blocks) == len(table.names))
    kept = np.isin(table.blocks, full)
    blocks = np.searchsorted(full, table.blocks[kept]).astype(np.int64)
    return Blocked(table.logs[kept], table.variants[kept], blocks, table.names)


def residuals(table: Blocked) -> Values:
    """Return the rest of the logarithms after variants and blocks are taken out by least squares, shape (n,)."""
    values = centre(table.logs, table.blocks)
    design = centre(np.eye(len(table.names))[table.variants], table.blocks)
    rest: Values = values - design @ np.linalg.lstsq(design.T @ design, design.T @ values, rcond=1e-12)[0]
    return rest


def centre(values: Values, labels: Labels) -> Values:
    """Return values, shape (n,) or (n, k), without the means of the groups that the labels make."""
    counts = np.bincount(labels)
    if values.ndim == 1:
        flat: Values = values - (np.bincount(labels, weights=values) / counts)[labels]
        return flat
    return np.column_stack([centre(column, labels) for column in values.T])
