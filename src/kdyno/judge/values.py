"""From samples to the one number per boot and benchmark that is compared."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from kdyno.errors import UserError
from kdyno.store.records import Benchmark, BootRecord, Sample

ByBlock = Mapping[int, float]
Table = Mapping[tuple[str, str], ByBlock]
"""(variant, benchmark) -> {block: value}. All values are finite and positive, in the benchmark's unit."""

UNIT_SCALE = {"MB/s": 1000.0}
"""Bytes per nanosecond are GB/s. Bytes per instruction need no factor."""


class UnusableSample(UserError):
    message = "benchmark {benchmark!r}, variant {variant!r}, block {block}: {reading} is not a positive number"
    hint = "leave this benchmark out of the experiment; if it is one of kdyno's own, please report it"


def value(sample: Sample, benchmark: Benchmark) -> float:
    """Return a sample in the benchmark's unit: cost of one operation, or bytes per unit of the clock.

    `elapsed` and `work` must be positive.
    """
    if benchmark.direction == "lower":
        return sample.elapsed / sample.work
    return UNIT_SCALE.get(benchmark.unit, 1.0) * sample.work / sample.elapsed


def table(boots: Iterable[BootRecord], benchmarks: Iterable[Benchmark]) -> Table:
    """Return the value of every benchmark in every `ok` boot: the median over its iterations.

    The boot is the unit of replication: its iterations share one layout of memory and one history, so they say
    little about the next boot, and are summed up in one number. The median, because a timer tick, which falls into
    few iterations, is not what the benchmark measures. Raises UnusableSample.
    """
    described = {benchmark.name: benchmark for benchmark in benchmarks}
    summaries: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for boot in boots:
        if boot.status != "ok":
            continue
        readings: dict[str, list[float]] = defaultdict(list)
        for sample in boot.samples:
            if sample.elapsed <= 0 or sample.work <= 0:
                raise _unusable(sample.benchmark, boot.variant, boot.block, f"{sample.work} per {sample.elapsed}")
            readings[sample.benchmark].append(value(sample, described[sample.benchmark]))
        for name, values in readings.items():
            summaries[boot.variant, name][boot.block] = float(np.median(values))
    return dict(summaries)


def require_positive(values: Table) -> None:
    """Raise UnusableSample, naming boot and benchmark, if a value is zero, negative, infinite or not a number."""
    for (variant, benchmark), by_block in values.items():
        for block, each in by_block.items():
            if not (math.isfinite(each) and each > 0):
                raise _unusable(benchmark, variant, block, str(each))


def _unusable(benchmark: str, variant: str, block: int, reading: str) -> UnusableSample:
    return UnusableSample(benchmark=benchmark, variant=variant, block=block, reading=reading)
