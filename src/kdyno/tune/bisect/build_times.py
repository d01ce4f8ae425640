"""How long the images of a bisection take to build: by this command's builds, else by those on record."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from functools import cached_property

from kdyno.base.state import State
from kdyno.kernel.built_kernels.plan import GivenPlan
from kdyno.runs.forecast import usual_build
from kdyno.runs.prepare import Prepared
from kdyno.tune.bisect.packages import PackageRange
from kdyno.tune.bisect.ranges import KernelRange

BUILD_SECONDS = 600.0
"""A guess where nothing else is known."""
DOWNLOAD_SECONDS = 60.0
"""A guess for a package with a kernel."""


@dataclass
class BuildTimes:
    """Seconds of builds and links, 0 on a machine that starts no images."""

    kernels: KernelRange
    prepared: Prepared
    state: State
    builds: list[float] = field(default_factory=list)
    """Those of the first image of each kernel that this command has built or downloaded."""
    links: list[float] = field(default_factory=list)
    """Those of its further images."""

    @property
    def build(self) -> float:
        """The usual seconds of a kernel's first image."""
        return statistics.median(self.builds) if self.builds else self._usual[0]

    @property
    def link(self) -> float:
        """The usual seconds of a further one, in another link order."""
        return statistics.median(self.links) if self.links else self._usual[1]

    @property
    def is_guess(self) -> bool:
        """Whether nothing on record shows how long a build takes."""
        return not self.builds and self._usual[2]

    @cached_property
    def _usual(self) -> tuple[float, float, bool]:
        """The seconds of a build and of a link by what is on record, and whether the first is a guess."""
        if not self.prepared.about.needs_images:
            return 0.0, 0.0, False
        if isinstance(self.kernels, PackageRange):
            return DOWNLOAD_SECONDS, 0.0, False
        [plan, *_] = next(iter(self.prepared.plans.values()))
        if isinstance(plan, GivenPlan):
            return 0.0, 0.0, False
        build, link, is_guess = usual_build(plan, self.state)
        return (BUILD_SECONDS, link, True) if build is None else (build, link, is_guess)
