"""The content of the files, put together: the input of the judge and of the caveats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kdyno.base.measurement import Direction
from kdyno.base.text import format_list
from kdyno.judge.stats.observations import Observations, ReplicateSample
from kdyno.judge.stats.verdict import Scope
from kdyno.measure.readers import units
from kdyno.measure.readers.readings import PublishedValue
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.sheet import SheetGrid


@dataclass(frozen=True)
class Gathered:
    observations: tuple[Observations, ...]
    notes: tuple[str, ...]
    columns: Mapping[str, str]
    boots: str
    """The unknown facts about the boots that the values come from; empty if each value is of its own boot."""
    published: tuple[PublishedValue, ...] = ()
    """The rows of tables of means, as written."""
    claims: tuple[tuple[SheetGrid, str], ...] = ()
    """Tables of published statistics among those, each with its file."""
    days: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """Benchmark -> variant -> days of measuring."""
    row_ranges: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    """Benchmark -> variant -> its first and last row, if only the rows may tell the order of measuring."""
    summed_up: bool = False
    """Whether values are medians of several: results published about single values can't be checked against them."""
    confounded: tuple[str, ...] = ()
    """Sentences on columns that differ with the variant."""

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants, in the order of the files."""
        return tuple(dict.fromkeys(variant for observed in self.observations for variant in observed.groups))

    @property
    def layouts_sampled(self) -> bool:
        """Return whether all values come from several link orders of their variant."""
        return all(
            isinstance(group, ReplicateSample) and group.clusters is not None and len(np.unique(group.clusters)) > 1
            for observed in self.observations
            for group in observed.groups.values()
        )

    @property
    def scope(self) -> Scope:
        """Return the scope of the verdicts."""
        if self.boots:
            return "boots"
        return "kernels" if self.layouts_sampled else "images"


@dataclass
class Directions:
    """Decides which direction is better if that is certain, and remembers the benchmarks for which it isn't."""

    request: JudgeRequest
    unknown: list[str] = field(default_factory=list)

    def direction_of(self, benchmark: str, unit: str, written: str = "", column: str = "") -> Direction | None:
        """Return the direction that the user gave, else that of the file (`written`), else the one shown by the unit or
        the names of the benchmark and of the `column` of its values, if one of them leaves no doubt; None if it is
        unknown.
        """
        if self.request.direction:
            return self.request.direction
        word = written.strip().lower()
        if word.startswith(("low", "less", "small")):
            return "lower"
        if word.startswith(("high", "more", "big", "larg")):
            return "higher"
        if certain := units.direction(unit, f"{benchmark} {column}"):
            return certain
        self.unknown.append(benchmark)
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.unknown:
            return ()
        names = format_list(self.unknown)
        called = "they are" if len(self.unknown) > 1 else "it is"
        return (
            f"nothing says whether lower or higher is better for {names}: {called} called higher and lower, not faster "
            "and slower; give it with --higher or --lower",
        )


def missing_note(missing: Mapping[str, int]) -> tuple[str, ...]:
    """Return the note on cells that say that nothing was measured, by variant."""
    counts = [f"{count:,} of {variant}" for variant, count in missing.items() if count]
    return (
        (f"cells without a measurement (empty, NA, NaN or -) were left out: {format_list(counts, 8)}",)
        if counts
        else ()
    )
