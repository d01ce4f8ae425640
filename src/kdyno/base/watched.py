"""The events of a run that a watching user sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Ahead:
    """The work of a run, as it was forecast."""

    title: str
    images: int
    boots: int
    boots_before: int = 0
    """Boots that are on record already."""
    seconds_before_boots: float | None = 0.0
    """Seconds; None: not known."""
    seconds_of_a_boot: float = 0.0
    """Seconds that each boot adds to the run: less where several run side by side."""


@dataclass(frozen=True)
class Standing:
    """A variant's state against the baseline: benchmarks by verdict, and the effect on the whole workload."""

    variant: str
    verdicts: Mapping[str, int]
    overall: str = ""
