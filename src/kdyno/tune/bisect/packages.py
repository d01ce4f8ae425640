"""The range between two packages with kernels: those of the same series that apt knows, in the order of their numbers.

Nothing is built. A package is downloaded when its kernel is measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from kdyno.base.errors import UserError
from kdyno.kernel.built_kernels.debian import IMAGE, Package, kernel_packages, known_package
from kdyno.kernel.image import ImageRecord
from kdyno.kernel.knobs.image import DEBIAN
from kdyno.kernel.recipe import Recipe

DOTS = ".."
NUMBER = re.compile(r"[0-9]+")


class SamePackages(UserError):
    message = "{good} and {bad} are the same package"
    hint = "name a package before the slow-down, and one after it"


class ReversedPackages(UserError):
    message = "the range {good}..{bad} is reversed: {bad} is the older package"
    hint = "swap the ends: {bad}..{good}; add --better to find what made the benchmark better"


class PackagesUnlike(UserError):
    message = "{good} and {bad} are not of one series: their names differ in more than numbers"
    hint = "compare both by `kdyno ab image=debian:{good} image=debian:{bad}`"


class PackageNotReverted(UserError):
    message = "{package} is built already, and later packages contain it"
    hint = "bisect the commits of its source"


@dataclass(frozen=True)
class PackageRange:
    """The packages from the good end to the bad end; each step is a new package of the distribution."""

    kind: ClassVar[Literal["packages"]] = "packages"

    words: tuple[str, ...]
    """The range as the user wrote it."""
    packages: tuple[Package, ...]

    @property
    def named(self) -> str:
        return " ".join(self.words)

    @property
    def steps(self) -> int:
        return len(self.packages) - 1

    @property
    def resolved(self) -> dict[str, str]:
        """The version by package: apt's lists may bring another one."""
        return {package.name: package.version for package in self.packages}

    def name(self, state: int) -> str:
        """Return the name of a kernel, which is that of its variant."""
        return self.packages[state].name.removeprefix(IMAGE)

    def title(self, state: int) -> str:
        return self.packages[state].version

    def recipe(self, base: Recipe, state: int) -> Recipe:
        return base.model_copy(update={"image": f"{DEBIAN}{self.packages[state].name}"})

    def built(self, records: Iterable[ImageRecord], base: Recipe, config: str) -> frozenset[int]:  # noqa: ARG002
        """Return the states whose package was read before."""
        images = {record.recipe.image for record in records}
        return frozenset(state for state, package in enumerate(self.packages) if f"{DEBIAN}{package.name}" in images)

    def recipe_without(self, base: Recipe, step: int, directory: Path) -> Recipe:  # noqa: ARG002
        """Raise PackageNotReverted: a package has all changes of the packages before it."""
        raise PackageNotReverted(package=self.packages[step].name)

    def notes(self) -> list[str]:
        return []

    def advice(self, before: int, after: int) -> str:
        """Return where the changes between two packages are listed."""
        old, new = self.packages[before], self.packages[after]
        return f"its changes: `apt-get changelog {new.name}`, from {new.version} down to {old.version}"


def is_package_range(word: str) -> bool:
    """Return whether a word of the command line is a range of packages."""
    return word.startswith(DEBIAN) and DOTS in word


def read_packages(word: str) -> PackageRange:
    """Return the range between two packages: `debian:linux-image-A..B`, or the whole name in the place of B.

    Raises SamePackages, ReversedPackages, PackagesUnlike and UnknownKernelPackage.
    """
    good, _, bad = word.removeprefix(DEBIAN).partition(DOTS)
    bad = bad.removeprefix(DEBIAN)
    bad = bad if bad.startswith(IMAGE) else f"{IMAGE}{bad}"
    if good == bad:
        raise SamePackages(good=good, bad=bad)
    for name in (good, bad):
        known_package(name)
    if _series(good) != _series(bad):
        raise PackagesUnlike(good=good, bad=bad)
    if _numbers(good) > _numbers(bad):
        raise ReversedPackages(good=good, bad=bad)
    names = {
        name
        for name in kernel_packages()
        if _series(name) == _series(good) and _numbers(good) <= _numbers(name) <= _numbers(bad)
    }
    names |= {good, bad}
    return PackageRange((word,), tuple(known_package(name) for name in sorted(names, key=_numbers)))


def _series(name: str) -> str:
    """Return what packages of one series share: the name without its numbers."""
    return NUMBER.sub("#", name)


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(map(int, NUMBER.findall(name)))
