"""The settings of a search, and their defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchSettings:
    """The settings of a search."""

    probability: float = 0.95
    """The probability of a culprit at which the search stops."""
    margin: float = 0.002
    """Ends within this fraction of each other are equal."""
    blocks: int = 4
    """The first blocks of the bad end."""
    most_blocks: int = 64
    """The most blocks of one state."""
    most_builds: int = 24
    """The most kernels that are built, both ends included. Further link orders are not counted."""
    layouts: int = 16
    """The most link orders of a kernel; 0: one image of each, also for checks."""
    revert: bool = True
    """Whether the bad end without each confirmed step is measured, too."""
