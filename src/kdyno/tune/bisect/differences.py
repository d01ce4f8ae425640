"""How two kernels of a range differ: in the benchmarks that a run measured, and in their configurations."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from kdyno.base.errors import KdynoError, UserError
from kdyno.base.files import read_whole
from kdyno.base.measurement import Benchmark
from kdyno.judge.verdicts.regression import means
from kdyno.judge.verdicts.values import table
from kdyno.kernel.kconfig_check import read_config
from kdyno.kernel.knobs.kconfig import MOST_BYTES
from kdyno.store.records import BootRecord


class BenchmarksNotMeasured(UserError):
    message = "the good end {name} measures no benchmark called {benchmarks}"
    hint = "name benchmarks that it can run"


class NoValue(Exception):
    """A kernel has no value of a benchmark."""

    def __init__(self, variant: str, benchmark: str) -> None:
        super().__init__(variant, benchmark)
        self.variant, self.benchmark = variant, benchmark


def differences(
    boots: Sequence[BootRecord], benchmarks: Collection[Benchmark], pair: tuple[str, str], counting: Sequence[str]
) -> dict[str, dict[int, float]]:
    """Return by benchmark and block ln(other / good) of a pair (good, other); positive is worse.

    Benchmarks count that `counting` names, itself or by its test; all if it is empty. All of them have the same blocks.
    Raises NoValue for a kernel that doesn't measure one of them, and BenchmarksNotMeasured.
    """
    good, other = pair
    for variant in pair:
        if not any(boot.variant == variant and boot.status == "ok" for boot in boots):
            raise NoValue(variant, "any benchmark")
    values = table(boots, benchmarks)
    counted = [one for one in benchmarks if not counting or means(counting, one.name)]
    if not counted:
        raise BenchmarksNotMeasured(name=good, benchmarks=", ".join(counting) or "anything")
    for variant in pair:
        for benchmark in counted:
            if not values.get((variant, benchmark.name)):
                raise NoValue(variant, benchmark.name)
    blocks = set.intersection(*(set(values[variant, one.name]) for variant in pair for one in counted))
    if not blocks:
        raise NoValue(other, counted[0].name)
    return {
        one.name: {
            block: (1 if one.direction == "lower" else -1)
            * math.log(values[other, one.name][block] / values[good, one.name][block])
            for block in sorted(blocks)
        }
        for one in counted
    }


def mean_by_block(by_benchmark: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """Return by block the mean of the differences in all benchmarks, which have the same blocks."""
    [blocks, *_] = by_benchmark.values()
    return {block: statistics.fmean(values[block] for values in by_benchmark.values()) for block in blocks}


def config_differences(before: Path, after: Path) -> tuple[str, ...]:
    """Return the symbols whose values differ between two configurations, with both values; absent is like n."""
    old, new = _config(before), _config(after)
    return tuple(
        f"{symbol}: {old.get(symbol, 'absent')} to {new.get(symbol, 'absent')}"
        for symbol in sorted({*old, *new})
        if old.get(symbol, "n") != new.get(symbol, "n")
    )


def _config(path: Path) -> dict[str, str]:
    try:
        return read_config(read_whole(path, MOST_BYTES).decode(errors="replace"))
    except (OSError, KdynoError):
        return {}
