"""What the files say, put together: what the judge gets, and what it takes to warn of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdyno.foreign import units
from kdyno.foreign.asked import Asked
from kdyno.foreign.summary import Published
from kdyno.judge.observations import Observations
from kdyno.measurement import Direction


@dataclass(frozen=True)
class Gathered:
    observations: tuple[Observations, ...]
    notes: tuple[str, ...]
    columns: Mapping[str, str]
    boots: str
    """What to say of the boots that the values come from; empty if each is known to be one."""
    published: tuple[Published, ...] = ()
    days: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """Benchmark -> variant -> days of measuring."""

    @property
    def variants(self) -> tuple[str, ...]:
        """In the order of the files."""
        return tuple(dict.fromkeys(name for each in self.observations for name in each.groups))


@dataclass
class Directions:
    """Decides which direction is better, and remembers what was taken without a reason."""

    asked: Asked
    unknown: list[str] = field(default_factory=list)

    def of(self, benchmark: str, unit: str, said: str = "") -> Direction:
        """What the user says, else the data (`said`), else a guess; lower if there is nothing to guess from."""
        if self.asked.direction:
            return self.asked.direction
        word = said.strip().lower()
        if word.startswith(("low", "less", "small")):
            return "lower"
        if word.startswith(("high", "more", "big", "larg")):
            return "higher"
        if guess := units.direction(unit, benchmark):
            return guess[0]
        self.unknown.append(benchmark)
        return "lower"

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.unknown:
            return ()
        names = listed(self.unknown)
        return (f"nothing says whether lower or higher is better of {names}: lower was taken (else --higher)",)


def listed(names: list[str], most: int = 4) -> str:
    """`a, b and 3 more`"""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
