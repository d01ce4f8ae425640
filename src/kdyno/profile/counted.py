"""The objects and source files that have training counters, and those whose counters were used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kdyno.base import elf_listing
from kdyno.kernel.image import Image
from kdyno.kernel.vmlinux.sources import NOWHERE, read_sources
from kdyno.measure.guest.counters import BEFORE, read_snapshots
from kdyno.measure.guest.symbols import LINE
from kdyno.profile.instrumented import clang_counts, is_used, objects_of
from kdyno.profile.ir_profile import CountedFunction
from kdyno.profile.objects import CountedObjects

Flags = NDArray[np.bool_]
STATIC = ";"
"""The separator between the source file and the name of a static function."""
LOCAL = "t"
"""The type that nm prints for a static function."""
ABOVE = "../"
"""The prefix of source paths in compiler commands: the object directory is a direct child of the source tree."""


def counted_by_gcc(snapshots: Sequence[Path]) -> CountedObjects:
    """Return which objects counted. Counters never decrease, so that an unchanged file counted nothing. `used` is left
    empty: the records of a build have it. Raises CountersUnsound.
    """
    boots = [read_snapshots(path).items for path in snapshots]
    everywhere, anywhere = set.intersection(*map(set, boots)), set[str]().union(*boots)
    moved = {name for name in everywhere if any(boot[name][BEFORE - 1] != boot[name][-1] for boot in boots)}
    objects = objects_of(everywhere)
    return CountedObjects(
        used=frozenset(),
        moved=frozenset(objects[name] for name in moved),
        all=frozenset(objects[name] for name in everywhere),
        has_odd=everywhere != anywhere,
    )


def counted_by_clang(snapshots: Sequence[Path], image: Image) -> CountedObjects:
    """Return which source files counted. The file of a static function is in its name, that of others in the debug
    information of the kernel that counted. Raises CountersUnsound, NoLineTables, and what reading the vmlinux raises.
    """
    functions, boots = clang_counts(snapshots, image)
    moved = np.any([boot[BEFORE - 1] != boot[-1] for boot in boots], axis=0)
    used = np.any([is_used(boot) for boot in boots], axis=0)
    return count_by_source(functions, files_of_globals(image.vmlinux), moved, used)


def files_of_globals(vmlinux: Path) -> dict[str, str]:
    """Return the source file of each global function, by name. Raises what read_sources raises, and ToolFailed."""
    symbols = LINE.findall(elf_listing.symbols(vmlinux))
    addresses = {name: int(address, 16) for address, _, kind, name in symbols if kind != LOCAL}
    files = read_sources(vmlinux).files(np.array(list(addresses.values()), np.uint64))
    return {name: file for name, file in zip(addresses, files, strict=True) if file != NOWHERE}


def count_by_source(
    functions: Sequence[CountedFunction], files: Mapping[str, str], moved: Flags, used: Flags
) -> CountedObjects:
    """Return which source files counted, from flags of the counters of all functions, in order. Pure.

    `files` has the source files of functions that aren't static.
    """
    with_counters: set[str] = set()
    with_moved: set[str] = set()
    with_used: set[str] = set()
    has_unplaced = has_unplaced_moved = False
    place = 0
    for function in functions:
        own = slice(place, place + function.counters)
        place = own.stop
        file = source_of(function.name) if STATIC in function.name else files.get(function.name)
        has_moved = bool(moved[own].any())
        if file is None:
            has_unplaced, has_unplaced_moved = True, has_unplaced_moved or has_moved
            continue
        with_counters.add(file)
        if has_moved:
            with_moved.add(file)
        if used[own].any():
            with_used.add(file)
    return CountedObjects(
        used=frozenset(with_used),
        moved=frozenset(with_moved),
        all=frozenset(with_counters),
        has_unplaced=has_unplaced,
        has_unplaced_moved=has_unplaced_moved,
    )


def source_of(name: str) -> str | None:
    """Return the source file in a static function's name, relative to its tree; None if it is elsewhere."""
    path = name.rpartition(STATIC)[0].removeprefix(ABOVE)
    return None if path.startswith(("/", ABOVE)) else path
