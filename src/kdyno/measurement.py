"""The words of measuring, below everything: lanes, what a benchmark is, what a sample is."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kdyno.frozen import Frozen

Lane = Literal["model", "wall"]
Direction = Literal["lower", "higher"]
BootStatus = Literal["ok", "failed", "lost"]
Correction = Literal["holm", "bh"]
"""How p-values are adjusted for the number of comparisons: after Holm, or after Benjamini and Hochberg."""
INT64_MAX = 2**63 - 1
Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""What every database holds in one column."""


class Benchmark(Frozen):
    """One measured quantity: its unit, and which direction is better."""

    name: str
    """`lat_syscall.null`"""
    test: str
    """The LMBench test it belongs to: `lat_syscall`."""
    unit: str
    """`instr`, `cycles` or `ns` per operation; `B/instr`, `B/cycle` or `MB/s` for bandwidths."""
    direction: Direction
    description: str


class Sample(Frozen):
    """One reading: so much work took so many units of the lane's clock."""

    benchmark: str
    iteration: Int64
    elapsed: Int64
    """Instructions in the model lane, or modelled cycles; nanoseconds in the wall lane."""
    work: Int64
    """Operations, or bytes for a bandwidth."""


UNIT_SCALE = {"MB/s": 1000.0}
"""Bytes per nanosecond are GB/s. Bytes per instruction need no factor."""


def value(sample: Sample, benchmark: Benchmark) -> float:
    """Return a sample in the benchmark's unit: cost of one operation, or bytes per unit of the clock.

    `elapsed` and `work` must be positive.
    """
    if benchmark.direction == "lower":
        return sample.elapsed / sample.work
    return UNIT_SCALE.get(benchmark.unit, 1.0) * sample.work / sample.elapsed
