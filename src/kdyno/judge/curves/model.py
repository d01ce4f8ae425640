"""The output of `kdyno scaling`, as data."""

from __future__ import annotations

from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.judge.stats.scaling.both_laws import Scaling

Work = Literal["copies", "shared"]
"""The work of n processes: n copies of it, one each; or one work that they share."""


class ScalingValue(Frozen):
    """One replicate: its throughput."""

    n: int
    block: int | None
    throughput: float


class ScalingSeries(Frozen):
    """One workload under one variant."""

    workload: str
    variant: str
    work: Work | None
    """The better direction; None if nobody said; rates need no direction."""
    unit: str
    """The unit of throughput: that of the benchmark if it is a rate, `1/s` for works in seconds."""
    values: tuple[ScalingValue, ...]
    scaling: Scaling


class Tax(Frozen):
    """The cost of a variant for a single process: its throughput at n = 1 over that of the baseline."""

    workload: str
    work: Work | None
    variant: str
    ratio: float
    """Below 1: a single process is slower under the variant."""
    low: float | None
    """Ends of its interval; None if no spread is known."""
    high: float | None


class ScalingReport(Frozen):
    """The output of `kdyno scaling --json`."""

    schema_version: Literal[1] = 1
    title: str
    measured: str
    """The kind of the values, in one line: the lane of a run, or how a file was read."""
    confidence: float
    notices: tuple[str, ...]
    baseline: str
    """The variant that taxes are relative to."""
    series: tuple[ScalingSeries, ...]
    taxes: tuple[Tax, ...]
    """Empty for a single variant, and if n = 1 wasn't measured."""
    run: str | None
    """The id of the run; None for a file."""
    files: tuple[str, ...]
    sha256: tuple[str, ...]
