"""What inputs of builds are made of PMU records: a new kind is a function (in profile/) and a row here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kdyno.instrument.pmu import Events
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import ProfileSettings
from kdyno.profile.autofdo import sample_profile
from kdyno.profile.order import order
from kdyno.profile.propeller import clusters


@dataclass(frozen=True)
class Exporter:
    """One way from records to what a build takes."""

    version: int
    """Raised when the same records would give another content: part of the digest of what it makes."""
    events: Events
    """What the boots count."""
    write: Callable[[Sequence[Path], Image, ProfileSettings], bytes]
    """The content, of the PMU records of one image, one for each seed, with the names of their benchmarks."""
    settings: tuple[str, ...] = ()
    """The fields of ProfileSettings that it heeds: another value of the others makes nothing anew."""


EXPORTERS: dict[str, Exporter] = {
    "autofdo": Exporter(version=1, events="edges", write=sample_profile),
    "propeller": Exporter(version=1, events="edges", write=clusters, settings=("cold",)),
    "order": Exporter(version=1, events="trace", write=order, settings=("families", "guard")),
}
"""By name, which is part of the digest too."""
