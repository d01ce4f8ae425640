"""What is told of a run to who watches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Ahead:
    """What a run has to do, as it was forecast."""

    title: str
    images: int
    boots: int
    boots_before: int = 0
    """Boots that are on record already."""
    seconds_before_boots: float | None = 0.0
    """None: nothing tells."""
    seconds_of_a_boot: float = 0.0
    """By which the time grows with each, so less where several run side by side."""


@dataclass(frozen=True)
class Standing:
    """How a variant stands against the baseline: benchmarks by verdict, and the effect on the whole workload."""

    variant: str
    verdicts: Mapping[str, int]
    overall: str = ""
