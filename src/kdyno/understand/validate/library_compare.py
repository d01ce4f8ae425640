"""Compares native and modelled ratios of pairs of option sets. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kdyno.base.frozen import Frozen
from kdyno.understand.validate.effects import Agreement, Effect, agreement
from kdyno.understand.validate.library import Library, LibraryMeasurements

CONFIDENCE = 0.95
"""The confidence of the interval that decides whether a native ratio exceeds its noise."""


class Figure(Frozen):
    """One load with one set of options."""

    load: str
    options: str
    native: float
    """Cycles of the processor: the smallest of all passes."""
    spread: float
    """The excess of the slowest pass: 0.1 is 10 %."""
    modelled: float
    """Cycles of the model."""
    instructions: float


class Ratio(Frozen):
    """One load: cycles with one set of options over those with another."""

    load: str
    one: str
    other: str
    native: float
    noise: float
    """The noise of ln(native): half the width of its interval over the passes, in which sets took turns."""
    modelled: float
    instructions: float
    """The ratio of instructions, which needs no model."""

    @property
    def clear(self) -> bool:
        """Return whether the native ratio is beyond its noise."""
        return bool(abs(np.log(self.native)) > self.noise)

    def effect(self, *, by_instructions: bool = False) -> Effect:
        modelled = self.instructions if by_instructions else self.modelled
        return Effect(f"{self.load}, {self.one} / {self.other}", self.native, self.clear, modelled)


class PairOfSets(Frozen):
    """Two sets of options, over all loads."""

    one: str
    other: str
    agreement: Agreement
    by_instructions: Agreement


class LibraryReport(Frozen):
    """`kdyno validate --library --json` prints it."""

    source: str
    family: str
    model: str
    """The name of the model and its known error, in words."""
    flags: dict[str, tuple[str, ...]]
    """By option set, the flags that affect code."""
    passes: int
    figures: tuple[Figure, ...]
    ratios: tuple[Ratio, ...]
    pairs: tuple[PairOfSets, ...]
    agreement: Agreement
    """The agreement over all pairs. Ratios of one load share figures, and are not independent."""
    by_instructions: Agreement
    notes: tuple[str, ...]


def compare_library(library: Library) -> LibraryReport:
    """Compare every load in every pair of option sets."""
    measured = library.measured
    ratios = ratios_of(measured)
    pairs = tuple(
        _pair([ratio for ratio in ratios if (ratio.other, ratio.one) == names])
        for names in combinations(measured.sets, 2)
    )
    return LibraryReport(
        source=library.source,
        family=library.family.name,
        model=library.family.caption(),
        flags=library.flags,
        passes=len(measured.native),
        figures=figures_of(measured),
        ratios=ratios,
        pairs=pairs,
        agreement=agreement([ratio.effect() for ratio in ratios]),
        by_instructions=agreement([ratio.effect(by_instructions=True) for ratio in ratios]),
        notes=library.notes,
    )


def _pair(ratios: Sequence[Ratio]) -> PairOfSets:
    return PairOfSets(
        one=ratios[0].one,
        other=ratios[0].other,
        agreement=agreement([ratio.effect() for ratio in ratios]),
        by_instructions=agreement([ratio.effect(by_instructions=True) for ratio in ratios]),
    )


def figures_of(measured: LibraryMeasurements) -> tuple[Figure, ...]:
    """Return a figure for every load and set, ordered by loads first."""
    least, most = measured.native.min(axis=0), measured.native.max(axis=0)
    return tuple(
        Figure(
            load=load,
            options=options,
            native=float(least[row, column]),
            spread=float(most[row, column] / least[row, column] - 1),
            modelled=float(measured.modelled[row, column]),
            instructions=float(measured.instructions[row, column]),
        )
        for row, load in enumerate(measured.loads)
        for column, options in enumerate(measured.sets)
    )


def ratios_of(measured: LibraryMeasurements) -> tuple[Ratio, ...]:
    """Return a ratio for every load and pair of sets: cycles of the later set over those of the earlier."""
    least = measured.native.min(axis=0)
    return tuple(
        Ratio(
            load=load,
            one=measured.sets[other],
            other=measured.sets[one],
            native=float(least[row, other] / least[row, one]),
            noise=noise_of(measured.native[:, row, other], measured.native[:, row, one]),
            modelled=float(measured.modelled[row, other] / measured.modelled[row, one]),
            instructions=float(measured.instructions[row, other] / measured.instructions[row, one]),
        )
        for one, other in combinations(range(len(measured.sets)), 2)
        for row, load in enumerate(measured.loads)
    )


def noise_of(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return half the width of the interval of the mean ln(one / other).

    Both have shape (P,), for P > 1 passes in which they took turns.
    """
    from scipy.special import stdtrit

    logs = np.log(one / other)
    reach = float(stdtrit(len(logs) - 1, (1 + CONFIDENCE) / 2))
    return reach * float(logs.std(ddof=1) / np.sqrt(len(logs)))
