"""kdyno's own patches: what `patches = ["page-block"]` names, and which versions of Linux each is for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

from pydantic import Field

from kdyno.base.errors import Unbuildable, UserError
from kdyno.base.frozen import Frozen
from kdyno.base.text import clean
from kdyno.kernel.image import SourceIdentity

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
"""A word with a dot or a slash is a file."""

Release = tuple[int, int]
"""A version of Linux: the first two numbers."""


class UnknownPatch(UserError):
    message = "kdyno has no patch of its own with the name {name}; it has {names}"
    hint = "name a patch of yours by its file: {name}.patch, or ./{name}"


class NotForVersion(Unbuildable):
    message = "the patch {name} is for Linux {versions}, and {source} is {version}"
    hint = "choose a source of such a version, or leave the patch out"


class Versions(Frozen):
    """The versions of Linux that one file of a patch is for."""

    oldest: Annotated[Release, Field(alias="from")]
    below: Release
    file: str
    """In the package's data, below `patches`."""

    def __str__(self) -> str:
        return f"from {_dotted(self.oldest)}, below {_dotted(self.below)}"


class OwnPatch(Frozen):
    """A patch of kdyno's, with a file for each range of versions."""

    about: str
    """Its purpose, for people."""
    config: tuple[str, ...]
    """Kconfig symbols (without CONFIG_) that a kernel with the patch is built with."""
    versions: Annotated[tuple[Versions, ...], Field(min_length=1)]


@cache
def series() -> dict[str, OwnPatch]:
    """Return all patches by name."""
    text = (files("kdyno") / "data" / "patches" / "series.toml").read_text(encoding="utf-8")
    return {name: OwnPatch.model_validate(row) for name, row in tomllib.loads(text).items()}


def is_name(word: str) -> bool:
    """Return whether an entry of `patches` names one of kdyno's own, known or not, and no file."""
    return NAME.fullmatch(word) is not None


def own(name: str) -> OwnPatch:
    """Return one of kdyno's own patches. Raise UnknownPatch."""
    try:
        return series()[name]
    except KeyError:
        raise UnknownPatch(name=clean(name), names=", ".join(sorted(series()))) from None


def file_of(name: str, source: SourceIdentity) -> Path:
    """Return the file of a patch for this source. Raise UnknownPatch and NotForVersion."""
    patch = own(name)
    release = release_of(source.version)
    row = next((row for row in patch.versions if row.oldest <= release < row.below), None)
    if row is None:
        versions = "; ".join(map(str, patch.versions))
        raise NotForVersion(name=name, versions=versions, source=source.spec, version=source.version)
    with as_file(files("kdyno") / "data" / "patches" / row.file) as path:
        return path


def given_files(entries: Sequence[str]) -> tuple[str, ...]:
    """Return the entries of `patches` that are files of the user. Raise UnknownPatch for a name that there isn't."""
    for name in filter(is_name, entries):
        own(name)
    return tuple(entry for entry in entries if not is_name(entry))


def release_of(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version: 6.1 of `6.1.159` and of `6.1-rc3`."""
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def _dotted(release: Release) -> str:
    return ".".join(map(str, release))
