"""The table of exporters, which make inputs of builds from boots. A new one is a function of profile/ and a row."""

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
    """Makes an input of a build from the files of boots."""

    version: int
    """The version: part of the digest of the input, and raised when the same records would give another content."""
    counts: Events | Counters
    """The events of the emulated PMU, or the counters of the kernel itself."""
    write: Callable[[Sequence[Path], Image, ProfileSettings], bytes]
    """Returns the content of the input. The files are those of the boots of one image, one for each seed: PMU records
    with the names of their benchmarks, or snapshots of counters."""
    check: Callable[[ProfileSettings], object] = lambda _: None
    """Raises UserError for settings that it doesn't support, before anything is built."""
    settings: tuple[str, ...] = ()
    """The fields of ProfileSettings that it uses. The other fields are not in the digest of the input."""


EXPORTERS: dict[str, Exporter] = {
    "autofdo": Exporter(version=1, counts="edges", write=sample_profile),
    "propeller": Exporter(version=1, counts="edges", write=clusters, settings=("cold",)),
    "order": Exporter(version=1, counts="trace", write=order, settings=("families", "guard")),
    "pgo-gcc": Exporter(
        version=1, counts=GcovCounters(), write=gcda_files, check=gcc_thresholds, settings=("hot", "cold")
    ),
    "pgo-clang": Exporter(version=1, counts=ClangCounters(), write=indexed_profile),
}
"""By name, which is part of the digest, too."""
