"""A run with everything that belongs to it, as frozen types: for export from a store, and import into another."""

from __future__ import annotations

from typing import Any

from pydantic import AwareDatetime

from kdyno.base.frozen import Frozen
from kdyno.base.measurement import Benchmark
from kdyno.store.records import Boot, BootPlace, RunRecord


class KeyedPlace(BootPlace):
    """A place of a run, and the key of the boot that fills it."""

    key: str


class KeptSelfTest(Frozen):
    """The results of a run's A/A experiments."""

    created: AwareDatetime
    found: dict[str, Any]


class WholeBoot(Frozen):
    """A boot, and the benchmarks that it described, in its order."""

    boot: Boot
    benchmarks: tuple[Benchmark, ...]


class WholeRun(Frozen):
    """The whole record of a run."""

    run: RunRecord
    cells: tuple[KeyedPlace, ...]
    """The places by position."""
    selftest: KeptSelfTest | None
    boots: tuple[WholeBoot, ...]
    """All boots, lost ones and check boots too; those of one key in the order of their attempts."""

    @property
    def in_cells(self) -> list[tuple[BootPlace, str]]:
        return [(place, place.key) for place in self.cells]

    @property
    def by_key(self) -> dict[str, list[WholeBoot]]:
        """Return the boots by key, each in the order of its attempts."""
        boots: dict[str, list[WholeBoot]] = {}
        for one in self.boots:
            boots.setdefault(one.boot.key, []).append(one)
        return boots

    @property
    def artefacts(self) -> dict[str, None]:
        """Return the SHA-256 of the artefacts of all boots, each once, in the order of the boots."""
        return dict.fromkeys(digest for one in self.boots for digest in artefacts_of(one.boot))


ARTEFACTS = ("console", "stream", "pmu", "counters")
"""Fields of Boot that name an artefact."""


def artefacts_of(boot: Boot) -> list[str]:
    return [digest for name in ARTEFACTS if (digest := getattr(boot, name)) is not None]
