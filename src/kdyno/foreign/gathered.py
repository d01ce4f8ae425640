"""What the files say, put together: what the judge gets, and what the caveats are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdyno.foreign import units
from kdyno.foreign.readings import Published
from kdyno.foreign.request import JudgeRequest
from kdyno.foreign.sheet import Grid
from kdyno.judge.observations import Observations
from kdyno.measurement import Direction
from kdyno.text import listed


@dataclass(frozen=True)
class Gathered:
    observations: tuple[Observations, ...]
    notes: tuple[str, ...]
    columns: Mapping[str, str]
    boots: str
    """What isn't known of the boots that the values come from; empty if each value is of its own boot."""
    published: tuple[Published, ...] = ()
    """The rows of tables of means, as written."""
    claims: tuple[tuple[Grid, str], ...] = ()
    """Tables of published statistics among those, each with its file."""
    days: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """Benchmark -> variant -> days of measuring."""

    @property
    def variants(self) -> tuple[str, ...]:
        """In the order of the files."""
        return tuple(dict.fromkeys(variant for observed in self.observations for variant in observed.groups))


@dataclass
class Directions:
    """Decides which direction is better, and remembers the benchmarks for which it had no reason."""

    request: JudgeRequest
    unknown: list[str] = field(default_factory=list)

    def of(self, benchmark: str, unit: str, written: str = "") -> Direction:
        """As the user says, else as the file has it (`written`), else a guess; lower if nothing tells."""
        if self.request.direction:
            return self.request.direction
        word = written.strip().lower()
        if word.startswith(("low", "less", "small")):
            return "lower"
        if word.startswith(("high", "more", "big", "larg")):
            return "higher"
        if guess := units.direction(unit, benchmark):
            return guess
        self.unknown.append(benchmark)
        return "lower"

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.unknown:
            return ()
        names = listed(self.unknown)
        return (f"nothing says whether lower or higher is better of {names}: lower was taken (else --higher)",)
