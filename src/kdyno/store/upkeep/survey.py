"""The content of a state directory, the space that it takes, and the part that nothing refers to. Nothing is made or
changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.files import read_whole
from kdyno.base.state import ROOT_RECORD, SCRATCH, State
from kdyno.store.upkeep.references import References

INCOMING = r"\..+-[a-z0-9_]{8}"
"""Unfinished files of a kdyno that was killed."""
KEY = "[0-9a-f]{64}"
SHORT = "[0-9a-f]{32}"
PARTS = {
    "images": ("kernels", re.compile(rf"{KEY}|\.{KEY}\.partial")),
    "sources": ("kernel trees", re.compile(r"[a-z]+-[0-9a-f]{32}(\.json)?|\.[a-z]+-[0-9a-f]{16,32}\.partial")),
    "inputs": ("profiles and orders", re.compile(rf"{KEY}(\.json)?|{INCOMING}")),
    "patches": ("patches that kdyno made", re.compile(rf"march-{SHORT}\.patch|{INCOMING}")),
    "kernels": ("kernels from packages", re.compile(SHORT)),
    "roots": ("root file systems of guests", re.compile(SHORT)),
    "builds": ("left by builds that failed", re.compile(rf"{KEY}(\.log)?")),
    "boots": ("left by boots that were killed", re.compile(rf".+{re.escape(SCRATCH)}")),
    "artefacts": ("consoles, streams and PMU records", re.compile(rf"{KEY}|\.incoming-.+")),
    "soaks": ("records of soaks", re.compile(".+")),
    "bisects": ("records of bisections", re.compile(".+")),
    "searches": ("records of searches", re.compile(".+")),
    "digests": ("digests of files that were hashed", re.compile(".+")),
    "removed": ("being removed", re.compile(SHORT)),
}
"""The parts of a state directory that are looked at: their content, and kdyno's names for the things in them.

A thing with another name isn't kdyno's, and is ignored.
"""
KEPT_WHOLE = ("soaks", "bisects", "searches", "digests")
"""Results that exist nowhere else, and things that are too small to look at."""
FOLDER = re.compile("[0-9a-f]{2}")
"""Names of the directories of artefacts."""
MOST_BYTES = 1 << 20
"""The most bytes of the record of a root file system."""
MOST_PATCH = 256_000_000
BLOCK = 512
"""The unit of st_blocks."""


@dataclass(frozen=True)
class Item:
    """One thing that stays or is removed as a whole."""

    part: str
    name: str
    paths: tuple[Path, ...]
    is_needed: bool
    changed: float
    """Seconds since 1970."""


def items(state: State, refs: References, artefacts: Collection[str]) -> list[Item]:
    """Return all things in the state directory; `artefacts` are those that boots have."""
    things = []
    for part in PARTS:
        for name, paths in sorted(_things(part, state.file(part), PARTS[part][1]).items()):
            with suppress(FileNotFoundError):  # somebody else's, who removed it meanwhile
                changed = max(path.lstat().st_mtime for path in paths)
                is_needed = _is_needed(part, name, paths[0], refs, artefacts)
                things.append(Item(part, name, paths, is_needed, changed))
    return things


def _things(part: str, directory: Path, shape: re.Pattern[str]) -> dict[str, tuple[Path, ...]]:
    """Return the paths of each thing by its name; a file and its description are one thing."""
    entries = _entries(directory)
    if part == "artefacts":
        entries = [path for entry in entries for path in (_entries(entry) if FOLDER.fullmatch(entry.name) else [entry])]
    by_name: dict[str, tuple[Path, ...]] = {}
    for path in entries:
        if shape.fullmatch(path.name):
            name = path.name if part in ("patches", "removed") else _stem(path.name)
            by_name[name] = (*by_name.get(name, ()), path)
    return by_name


def _entries(directory: Path) -> list[Path]:
    """Return the entries of a directory; none if it is a link to one, which is somebody else's."""
    with suppress(OSError):
        return [] if directory.is_symlink() else sorted(directory.iterdir())
    return []


def _stem(name: str) -> str:
    for suffix in (".json", ".log", ".console"):
        name = name.removesuffix(suffix)
    return name


def _is_needed(part: str, name: str, path: Path, refs: References, artefacts: Collection[str]) -> bool:
    match part:
        case "images" | "inputs" | "sources":
            return name in getattr(refs, part)
        case "artefacts":
            return name in artefacts
        case "roots":
            return _root_digest(path) in refs.roots
        case "patches":
            return _content_digest(path) in refs.patches
    return part in KEPT_WHOLE


def _root_digest(directory: Path) -> str:
    with suppress(OSError, ValueError, LookupError, TypeError):
        return str(json.loads(read_whole(directory / ROOT_RECORD, MOST_BYTES, follow_link=False))["digest"])
    return ""


def _content_digest(path: Path) -> str:
    with suppress(OSError):
        return hashlib.sha256(read_whole(path, MOST_PATCH, follow_link=False)).hexdigest()
    return ""


class Sizes:
    """The space of things on the disk. A file with several names counts for the first thing that is asked about."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, int]] = set()

    def size_of(self, item: Item) -> int:
        """Return the bytes of a thing."""
        return sum(self._status(status) for path in item.paths for status in _walk(path))

    def _status(self, status: os.stat_result) -> int:
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            if (inode := (status.st_dev, status.st_ino)) in self._seen:
                return 0
            self._seen.add(inode)
        return status.st_blocks * BLOCK


def _walk(path: Path) -> Iterator[os.stat_result]:
    """Yield the status of a path and of everything below it; files that are removed meanwhile are left out."""
    with suppress(OSError):
        yield path.lstat()
    remaining = [path] if path.is_dir() and not path.is_symlink() else []
    while remaining:
        with suppress(OSError), os.scandir(remaining.pop()) as entries:
            for file in entries:
                with suppress(OSError):
                    status = file.stat(follow_symlinks=False)
                    if file.is_dir(follow_symlinks=False):
                        remaining.append(Path(file.path))
                    yield status
