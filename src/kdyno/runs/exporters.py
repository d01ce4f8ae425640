"""What inputs of builds are made of boots: a new kind is a function (in profile/) and a row here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kdyno.kernel.image import Image
from kdyno.kernel.recipe import ProfileSettings
from kdyno.measure.guest.job import ClangCounters, Counters, GcovCounters
from kdyno.measure.guest.pmu import Events
from kdyno.profile.autofdo import sample_profile
from kdyno.profile.instrumented import gcc_thresholds, gcda_files, indexed_profile
from kdyno.profile.order import order
from kdyno.profile.propeller import clusters


@dataclass(frozen=True)
class Exporter:
    """One way from what boots leave to what a build takes."""

    version: int
    """Raised when the same records would give another content: part of the digest of what it makes."""
    counts: Events | Counters
    """What boots count: events of the emulated PMU, or what the kernel itself counts, without one."""
    write: Callable[[Sequence[Path], Image, ProfileSettings], bytes]
    """The content, of the files that boots of one image left, one for each seed: PMU records with the names of their
    benchmarks, or snapshots of counters."""
    check: Callable[[ProfileSettings], object] = lambda _: None
    """Raises UserError for settings that it can't heed, before anything is built."""
    settings: tuple[str, ...] = ()
    """The fields of ProfileSettings that it heeds: another value of the others makes nothing anew."""


EXPORTERS: dict[str, Exporter] = {
    "autofdo": Exporter(version=1, counts="edges", write=sample_profile),
    "propeller": Exporter(version=1, counts="edges", write=clusters, settings=("cold",)),
    "order": Exporter(version=1, counts="trace", write=order, settings=("families", "guard")),
    "pgo-gcc": Exporter(
        version=1, counts=GcovCounters(), write=gcda_files, check=gcc_thresholds, settings=("hot", "cold")
    ),
    "pgo-clang": Exporter(version=1, counts=ClangCounters(), write=indexed_profile),
}
"""By name, which is part of the digest too."""
