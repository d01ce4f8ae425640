"""Which source file the code at an address of a vmlinux comes from: the compilation unit that has it, says DWARF.

The symbol table can't tell: it has no file for a global function, and of a static one only the file's last name. Nor
can line tables, which name the header that an inline function was written in, not the file that it was compiled with.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.base import debuginfo, elf_listing
from kdyno.kernel.vmlinux.checks import require_line_tables
from kdyno.measure.guest.symbols import LINE

NOWHERE = ""
"""The file of code that no compilation unit has."""


@dataclass(frozen=True)
class CompilationUnit:
    """A compilation unit; `ranges` are its code, each from its start to before its end."""

    file: str
    """Relative to the source tree; of a generated file, to the object directory."""
    ranges: tuple[tuple[int, int], ...]
    name: str = ""
    """As the compiler was given it, which is what clang knows the module by."""


class Sources:
    """The source file of each address."""

    def __init__(self, units: Sequence[CompilationUnit]) -> None:
        code = sorted((start, end, unit.file, unit.name) for unit in units for start, end in unit.ranges if start < end)
        self._starts = np.array([start for start, *_ in code], np.uint64)
        self._ends = np.array([end for _, end, *_ in code], np.uint64)
        self._units = [(file, name) for *_, file, name in code]

    def files(self, addresses: NDArray[Any]) -> list[str]:
        """The file of each, NOWHERE for what is in none."""
        return [file for file, _ in self._at(addresses)]

    def names(self, addresses: NDArray[Any]) -> list[str]:
        """The same as the compiler was given it."""
        return [name for _, name in self._at(addresses)]

    def _at(self, addresses: NDArray[Any]) -> list[tuple[str, str]]:
        nowhere = (NOWHERE, NOWHERE)
        if not self._units:
            return [nowhere] * len(addresses)
        indices = np.searchsorted(self._starts, addresses, side="right").astype(np.int64) - 1
        inside = (indices >= 0) & (addresses < self._ends[indices])
        return [self._units[index] if is_inside else nowhere for index, is_inside in zip(indices, inside, strict=True)]


def read_sources(vmlinux: Path) -> Sources:
    """Of a vmlinux with line tables. Raises NotAVmlinux, NoLineTables, and what debuginfo.units raises."""
    require_line_tables(vmlinux)
    return Sources(
        [
            CompilationUnit(in_tree(unit.name, unit.directory), unit.ranges, unit.name)
            for unit in debuginfo.units(vmlinux)
        ]
    )


def in_tree(name: str, objects: str) -> str:
    """A unit's name as plans write it: relative to the source tree, which the object directory lies in."""
    path = posixpath.normpath(posixpath.join(objects, name))
    if objects == ".":  # as kdyno has its own kernels compiled, which name no directory of this host
        return path.removeprefix("../")
    for top in (objects, posixpath.dirname(objects)):
        if top.strip("/") and path.startswith(f"{top}/"):
            return path.removeprefix(f"{top}/")
    return path


def files_of(vmlinux: Path) -> dict[str, tuple[str, ...]]:
    """The files that each function's name is compiled in, sorted: several for static functions of one name.

    Raises what read_sources raises.
    """
    symbols = LINE.findall(elf_listing.symbols(vmlinux))
    addresses = np.array([int(address, 16) for address, *_ in symbols], np.uint64)
    files: dict[str, set[str]] = {}
    for (*_, name), file in zip(symbols, read_sources(vmlinux).files(addresses), strict=True):
        if file != NOWHERE:
            files.setdefault(name, set()).add(file)
    return {name: tuple(sorted(paths)) for name, paths in sorted(files.items())}
