"""The boots of a run that are judged, and the level: all at once at the end, or look by look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kdyno.judge.stats.estimate import CONFIDENCE
from kdyno.judge.stats.sequential import look_ends, nominal_levels
from kdyno.store.records import BootRecord, RunRecord, progress_of


@dataclass(frozen=True)
class Look:
    """One time that a run is judged."""

    number: int
    """From 1; 0 before the first look of a group-sequential run has come."""
    blocks: int
    """Blocks before this one are judged."""
    alpha: float
    confidence: float
    """Coverage of the intervals: repeated ones, which hold at every look."""


def look_of(run: RunRecord, boots: Sequence[BootRecord]) -> Look:
    """Return the last look whose boots are all on record; without looks the end, however far the run has come."""
    if run.looks == 1:
        return Look(1, run.blocks, run.alpha, CONFIDENCE)
    ends = look_ends(run.blocks, run.looks)
    levels = nominal_levels(run.alpha, len(ends))
    complete = complete_blocks(run, boots)
    number = sum(end <= min(complete, run.stopped_at or run.blocks) for end in ends)
    level = levels[max(number, 1) - 1]
    return Look(number, ends[number - 1] if number else 0, level, 1 - level)


def complete_blocks(run: RunRecord, boots: Sequence[BootRecord]) -> int:
    """Return how many blocks from the first on have a boot of every variant that was not given up."""
    return progress_of(run, boots).complete_blocks
