"""From samples to the one number per boot and benchmark that is compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kdyno.base.measurement import Benchmark, value
from kdyno.judge.stats import observations as observed
from kdyno.judge.stats.observations import Observations, UnusableSample
from kdyno.store.records import BootRecord

ByBlock = Mapping[int, float]
Table = Mapping[tuple[str, str], ByBlock]
"""(variant, benchmark) -> {block: value}, in the benchmark's unit."""


def table(boots: Iterable[BootRecord], benchmarks: Iterable[Benchmark]) -> Table:
    """Return the value of every benchmark in every `ok` boot: the median over its iterations.

    The boot is the unit of replication: its iterations share one layout of memory and one history, so they say little
    about the next boot, and are summed up in one number. The median, because a timer tick, which falls into few
    iterations, is not what the benchmark measures. Raise UnusableSample.
    """
    described = {benchmark.name: benchmark for benchmark in benchmarks}
    summaries: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for boot in boots:
        if boot.status != "ok":
            continue
        readings: dict[str, list[float]] = defaultdict(list)
        for sample in boot.samples:
            if not sample.usable:
                raise UnusableSample(
                    benchmark=sample.benchmark,
                    variant=boot.variant,
                    where=f"block {boot.block}",
                    reading=str(sample),
                )
            readings[sample.benchmark].append(value(sample, described[sample.benchmark]))
        for name, values in readings.items():
            summaries[boot.variant, name][boot.block] = float(np.median(values))
    return dict(summaries)


def observations(
    boots: Iterable[BootRecord], benchmarks: Iterable[Benchmark], variants: Sequence[str], *, layouts: bool = False
) -> list[Observations]:
    """Return the input of the judge, one for each benchmark in the order given; `groups` is empty if nobody measured
    it.

    Groups are in the order of `variants`. With `layouts` the layout of each boot is its cluster: pass it if the run
    sampled layouts. Raise UnusableSample.
    """
    boots, benchmarks = list(boots), list(benchmarks)
    of_boot = {(boot.variant, boot.block): boot for boot in boots if boot.status == "ok"}
    groups: dict[str, dict[str, observed.ReplicateSample]] = defaultdict(dict)
    for (variant, benchmark), by_block in table(boots, benchmarks).items():
        blocks = sorted(by_block)
        groups[benchmark][variant] = observed.ReplicateSample(
            values=np.array([by_block[block] for block in blocks]),
            blocks=np.array(blocks, dtype=np.int64),
            order=np.array([of_boot[variant, block].position for block in blocks], dtype=np.int64),
            clusters=np.array([of_boot[variant, block].layout_index for block in blocks], dtype=np.int64)
            if layouts
            else None,
        )
    return [
        Observations(
            benchmark=benchmark.name,
            unit=benchmark.unit,
            direction=benchmark.direction,
            description=benchmark.description,
            quantity=benchmark.quantity,
            is_part=benchmark.is_part,
            groups={name: groups[benchmark.name][name] for name in variants if name in groups[benchmark.name]},
        )
        for benchmark in benchmarks
    ]
