"""The gain of a recipe in a run beside the baseline. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from kdyno.base.measurement import Benchmark
from kdyno.judge.verdicts.values import Table
from kdyno.tune.space.outcome import Measured


class NoGain(Exception):
    """A kernel has no value of a benchmark in any block."""

    def __init__(self, variant: str, benchmark: str) -> None:
        super().__init__(variant, benchmark)
        self.variant, self.benchmark = variant, benchmark


def speed_gain(values: Table, benchmarks: Sequence[Benchmark], baseline: str, trial: str) -> Measured:
    """Return the mean over benchmarks of the logarithm of speed, and its standard error over blocks.

    Raises NoGain.
    """
    for variant in (baseline, trial):
        for benchmark in benchmarks:
            if not values.get((variant, benchmark.name)):
                raise NoGain(variant, benchmark.name)
    tables = [(values[baseline, one.name], values[trial, one.name], one.direction) for one in benchmarks]
    blocks = set.intersection(*(set(old) & set(new) for old, new, _ in tables)) if tables else set()
    if not blocks:
        raise NoGain(trial, benchmarks[0].name if benchmarks else "anything")
    by_block = [
        statistics.fmean(
            (1 if direction == "higher" else -1) * math.log(new[block] / old[block]) for old, new, direction in tables
        )
        for block in sorted(blocks)
    ]
    error = statistics.stdev(by_block) / math.sqrt(len(by_block)) if len(by_block) > 1 else 0.0
    return Measured(value=statistics.fmean(by_block), error=error)
