"""The kinds of packages that kdyno makes, by their names."""

from __future__ import annotations

from collections.abc import Mapping

from kdyno.ship.deb import DebPackager
from kdyno.ship.package_content import PackageKind
from kdyno.ship.packager import Packager
from kdyno.ship.pacman import PacmanPackager
from kdyno.ship.rpm import RpmPackager

PACKAGERS: Mapping[PackageKind, Packager] = {
    packager.kind: packager for packager in (DebPackager(), RpmPackager(), PacmanPackager())
}
