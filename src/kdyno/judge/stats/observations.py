"""The input of the judge: the values of one benchmark by variant, whoever measured them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kdyno.base.arrays import Labels, Values
from kdyno.base.errors import UserError
from kdyno.base.measurement import Direction, Quantity


class UnusableSample(UserError):
    message = "benchmark {benchmark!r}, variant {variant!r}, {where}: {reading} is not a positive number"
    hint = "leave this benchmark out; if it is one of kdyno's own, please report it"


class UnusableSummary(UserError):
    message = "benchmark {benchmark!r}, variant {variant!r}: mean {mean:g}, sd {sd:g}, n {n} can't be a summary"
    hint = "give a positive mean, a standard deviation that is not negative, and n of at least 1"


class BlockTwice(UserError):
    message = "benchmark {benchmark!r}, variant {variant!r}: block {block} has several values"
    hint = "give one value for each block and variant: sum up the readings of one boot by their median"


@dataclass(frozen=True)
class ReplicateSample:
    """One variant's values of one benchmark, one for each unit of replication; all arrays have shape (n,)."""

    values: Values
    """Values in the benchmark's unit; finite and positive."""
    blocks: Labels | None = None
    """The block of each value, each at most once; None if values of different variants don't belong together."""
    order: Labels | None = None
    """Place of each value in the order of measuring, over all variants; None if it wasn't recorded."""
    clusters: Labels | None = None
    """The layout of each value; None if layout wasn't sampled."""
    boots: Labels | None = None
    """The boot (or file) that each value is of, numbered alike in all benchmarks; None if unknown. Values of different
    benchmarks with one label were measured together, and are not independent of one another.
    """


@dataclass(frozen=True)
class Summary:
    """One variant's published mean and standard deviation, without the values."""

    mean: float
    sd: float
    """With n - 1 in the denominator."""
    n: int


@dataclass(frozen=True)
class Observations:
    """The values of one benchmark."""

    benchmark: str
    unit: str
    direction: Direction | None
    """The better direction; None if unknown: then a verdict is `higher` or `lower`."""
    description: str
    """The name of the measured quantity, for sentences: `pipe latency`."""
    groups: Mapping[str, ReplicateSample] | Mapping[str, Summary]
    """Samples by variant; variants without values are left out."""
    quantity: Quantity = "speed"
    step: float = 0.0
    """Values were rounded to multiples of this, in the benchmark's unit; 0 if they are exact, or if it is unknown."""
    is_part: bool = False
    """Whether it is a part of what another benchmark measures: then it stays out of the mean of all."""
    readings: Mapping[str, ReplicateSample] | None = None
    """All single readings, if `groups` has one value for each boot and there are few boots: they allow statements on
    these boots, as if nothing were known of boots.
    """

    def sample(self, variant: str) -> ReplicateSample | None:
        """Return the variant's values; None if it has none, or only a summary."""
        group = self.groups.get(variant)
        return group if isinstance(group, ReplicateSample) and len(group.values) else None

    def summary(self, variant: str) -> Summary | None:
        """Return the variant's summary; None if it has none, or values."""
        group = self.groups.get(variant)
        return group if isinstance(group, Summary) else None


def require_usable(observations: Observations) -> None:
    """Raise UnusableSample, UnusableSummary or BlockTwice, naming benchmark, variant and block or row.

    Values must be finite and positive, because they are compared as ratios; rows count from 1.
    """
    for variant, group in observations.groups.items():
        if isinstance(group, Summary):
            if not (math.isfinite(group.mean) and group.mean > 0 and 0 <= group.sd < math.inf and group.n >= 1):
                raise UnusableSummary(
                    benchmark=observations.benchmark, variant=variant, mean=group.mean, sd=group.sd, n=group.n
                )
        else:
            _require_positive(observations.benchmark, variant, group)
            _require_single(observations.benchmark, variant, group)


def _require_positive(benchmark: str, variant: str, sample: ReplicateSample) -> None:
    if not len(sample.values) or (sample.values.min() > 0 and sample.values.max() < np.inf):
        return
    for first in np.flatnonzero(~((sample.values > 0) & (sample.values < np.inf)))[:1]:
        place = f"row {first + 1}" if sample.blocks is None else f"block {sample.blocks[first]}"
        raise UnusableSample(benchmark=benchmark, variant=variant, where=place, reading=f"{sample.values[first]:g}")


def _require_single(benchmark: str, variant: str, sample: ReplicateSample) -> None:
    if sample.blocks is None or (np.diff(sample.blocks) > 0).all():
        return
    labels, counts = np.unique(sample.blocks, return_counts=True)
    if (counts > 1).any():
        raise BlockTwice(benchmark=benchmark, variant=variant, block=int(labels[np.argmax(counts > 1)]))
