"""Which source file each function of a vmlinux was compiled from, by its debug information.

A compile unit names its file and the addresses of its code (DWARF 4 and 5, section 3.1.1); llvm-dwarfdump reads both.
"""

from __future__ import annotations

import bisect
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kdyno.instrument.symbols import LINE
from kdyno.process import output
from kdyno.profile.llvm_tools import find_tool
from kdyno.profile.vmlinux import require_line_tables

UNIT = re.compile(r"^0x[0-9a-f]+: (?:Compile|Skeleton) Unit: ", re.MULTILINE)
TEXT = re.compile(r'^ {1,40}DW_AT_(name|comp_dir)\t\("(.*)"\)$', re.MULTILINE)
RANGE = re.compile(r"^ {1,40}\[0x([0-9a-f]+), 0x([0-9a-f]+)\)", re.MULTILINE)
ONE_RANGE = re.compile(
    r"^ {1,40}DW_AT_low_pc\t\(0x([0-9a-f]+)\)\n {1,40}DW_AT_high_pc\t\(0x([0-9a-f]+)\)$", re.MULTILINE
)


@dataclass(frozen=True)
class Unit:
    """A file that was compiled, and where its code is."""

    file: str
    """As the compiler was told: relative to `directory`, or absolute."""
    directory: str
    """Where the compiler ran."""
    ranges: tuple[tuple[int, int], ...]
    """Start and end of each stretch of code; the end is behind it."""


class UnitMap:
    """The source file of each address; files are relative to the tree, those made in the build to the object directory.

    What no unit claims has no file.
    """

    def __init__(self, units: Sequence[Unit]) -> None:
        tree = _tree(units)
        self._ranges = sorted(
            (start, end, _relative(unit, tree)) for unit in units for start, end in unit.ranges if start < end
        )
        self._starts = [start for start, _, _ in self._ranges]

    def file_at(self, address: int) -> str | None:
        place = bisect.bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        _, end, file = self._ranges[place]
        return file if address < end else None


def unit_map(vmlinux: Path) -> UnitMap:
    """Raises NotAVmlinux, NoLineTables, LlvmToolMissing and ToolFailed."""
    require_line_tables(vmlinux)
    return UnitMap(
        list(read_units(output([find_tool("llvm-dwarfdump"), "--debug-info", "--recurse-depth=0", vmlinux])))
    )


def files_of(vmlinux: Path) -> dict[str, tuple[str, ...]]:
    """The files that have a function of this name, sorted: several for static functions of headers. Raises as above."""
    return files_by_symbol(output(["nm", "-S", "--defined-only", vmlinux]), unit_map(vmlinux))


def files_by_symbol(listing: str, units: UnitMap) -> dict[str, tuple[str, ...]]:
    """For the functions in what `nm -S` lists. Pure."""
    files: dict[str, set[str]] = {}
    for address, _size, _kind, name in LINE.findall(listing):
        if file := units.file_at(int(address, 16)):
            files.setdefault(name, set()).add(file)
    return {name: tuple(sorted(paths)) for name, paths in sorted(files.items())}


def read_units(listing: str) -> Iterator[Unit]:
    """The units with code in what `llvm-dwarfdump --debug-info --recurse-depth=0` prints. Pure."""
    for text in UNIT.split(listing)[1:]:
        attributes = dict(TEXT.findall(text))
        ranges = tuple((int(start, 16), int(end, 16)) for start, end in RANGE.findall(text) + ONE_RANGE.findall(text))
        if "name" in attributes and ranges:
            yield Unit(attributes["name"], attributes.get("comp_dir", ""), ranges)


def _path(unit: Unit) -> str:
    return os.path.normpath(Path(unit.directory, unit.file))


def _inside(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")


def _tree(units: Sequence[Unit]) -> str:
    """The source tree, if no compiler ran in it: what the files outside of the object directory have in common."""
    paths = [Path(_path(unit)) for unit in units if not _inside(_path(unit), unit.directory)]
    directories = {path.parent for path in paths if path.is_absolute()}
    return os.path.commonpath(directories) if directories else ""


def _relative(unit: Unit, tree: str) -> str:
    path = _path(unit)
    for directory in (unit.directory, tree):
        if directory and _inside(path, directory):
            return path[len(directory.rstrip("/")) + 1 :]
    return path
