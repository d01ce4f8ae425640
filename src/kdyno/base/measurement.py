"""The terms of measuring, below everything: lanes, benchmarks, samples."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import CLOCKS

Direction = Literal["lower", "higher"]
Quantity = Literal["speed", "count"]
"""The kind of a value: `speed` for time, cycles or a rate, which can be faster or slower; `count` for a number of
things (instructions, misses, bytes), which can be fewer or more.
"""
BootStatus = Literal["ok", "failed", "lost"]
DISTURBED_PATHS = "disturbed_paths"
"""The condition of a boot that counts the benchmarks in which other work on the host spoiled many samples."""
Correction = Literal["holm", "bh"]
"""The adjustment of p-values for the number of comparisons: after Holm, or after Benjamini and Hochberg."""
COUNTS = frozenset({"instr", "B/instr", "misses", "walks"})
"""Units of the events that the emulated PMU counts."""
INT64_MAX = 2**63 - 1
Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""The range of integers that every database holds in one column."""


class AnyBenchmark(Frozen):
    """One quantity, whoever measured it: its unit, and which direction is better."""

    name: str
    """`lat_syscall.null`"""
    test: str
    """The test that measures it: `lat_syscall`, a test of LMBench; `command` for the output of a command."""
    unit: str
    """`instr`, `cycles` or `ns` per operation; `B/instr`, `B/cycle` or `MB/s` for bandwidths; a command has its own."""
    direction: Direction | None
    """The better direction; None if nobody said."""
    description: str


class Benchmark(AnyBenchmark):
    """A benchmark that was measured here."""

    direction: Direction
    is_part: bool = False
    """Whether it is a part of what another benchmark of its program measures, as system time is of elapsed time: it is
    judged, but stays out of the mean of all benchmarks.
    """

    @property
    def quantity(self) -> Quantity:
        """The kind of value: instructions are counted; all else measured here is time, cycles, or has a direction set
        by the user.
        """
        return "count" if self.unit in COUNTS else "speed"


class Sample(Frozen):
    """One reading: an amount of work and the units of the lane's clock that it took; or a value that a program
    printed.
    """

    benchmark: str
    iteration: Int64
    elapsed: Int64 | None = None
    """Instructions in the model lane, or modelled cycles; nanoseconds in the wall lane."""
    work: Int64 | None = None
    """Operations, or bytes for a bandwidth. Comes with `elapsed`."""
    value: float | None = None
    """The value in the benchmark's unit, instead of both: a throughput or a percentile that a program printed."""

    @model_validator(mode="after")
    def _is_given_one_way(self) -> Self:
        if (self.elapsed is None) != (self.work is None) or (self.elapsed is None) == (self.value is None):
            raise ValueError("a sample is either `elapsed` and `work`, or a `value`")
        return self

    @property
    def usable(self) -> bool:
        """Return whether the sample yields a value that has a logarithm."""
        numbers = [number for number in (self.elapsed, self.work, self.value) if number is not None]
        return all(number > 0 and math.isfinite(number) for number in numbers)

    def __str__(self) -> str:
        return f"{self.work} per {self.elapsed}" if self.value is None else f"{self.value:g}"


UNIT_SCALE = {clock.bandwidth_unit: clock.bandwidth_scale for clock in CLOCKS}
"""One byte per unit of a lane's clock, by the unit of its bandwidths; other units need no factor."""


def value(sample: Sample, benchmark: Benchmark) -> float:
    """Return a sample in the benchmark's unit: its own value, cost of one operation, or bytes per unit of the clock.

    The sample must be usable.
    """
    if sample.value is not None:
        return sample.value
    assert sample.elapsed is not None and sample.work is not None
    if benchmark.direction == "lower":
        return sample.elapsed / sample.work
    return UNIT_SCALE.get(benchmark.unit, 1.0) * sample.work / sample.elapsed
