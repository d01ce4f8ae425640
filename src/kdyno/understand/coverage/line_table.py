"""The line tables of a vmlinux: which line of which source each instruction was compiled from."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.base import debuginfo
from kdyno.base.debuginfo import PIECE, Lines
from kdyno.profile.vmlinux import require_line_tables


@dataclass(frozen=True, eq=False)
class LineTable:
    """The lines of all code, by address."""

    files: tuple[str, ...]
    """Relative to the source tree; of a generated file, as `GENERATED` says; others as they are."""
    pieces: NDArray[Any]
    """Of dtype PIECE, longer than nothing."""
    marks: NDArray[Any]
    """The same of lines that begin at an address which the table then gives to another: both ends are the address."""

    def lines_at(self, addresses: NDArray[Any]) -> list[dict[str, int]]:
        """For each address the files with lines that have code or begin there, each with the first of its lines."""
        lines_of: list[dict[str, int]] = [{} for _ in addresses]
        for rows in (self.pieces, self.marks):
            first = np.searchsorted(rows["start"], addresses, side="left").tolist()
            behind = np.searchsorted(rows["start"], addresses, side="right").tolist()
            for lines, start, end in zip(lines_of, first, behind, strict=True):
                for row in rows[start:end]:
                    file, line = self.files[row["file"]], int(row["line"])
                    lines[file] = min(line, lines.get(file, line))
        return lines_of


GENERATED = "o/"
"""What the name of a file begins with that lies in the object directory."""


def read_line_table(vmlinux: Path) -> LineTable:
    """Of a vmlinux with line tables. Raises NotAVmlinux, NoLineTables, and what debuginfo.lines raises."""
    require_line_tables(vmlinux)
    return one_table(debuginfo.lines(vmlinux))


def one_table(lines: Lines) -> LineTable:
    """All tables as one. Pure."""
    place_of: dict[str, int] = {}
    places = [
        place_of.setdefault(in_tree(posixpath.join(directory, path), directory), len(place_of))
        for directory, path in lines.files
    ]
    pieces = np.concatenate(lines.pieces) if lines.pieces else np.empty(0, PIECE)
    pieces["file"] = np.array(places, np.uint32)[pieces["file"]]
    marks = _marks(pieces)
    pieces = _begun(pieces[pieces["start"] < pieces["end"]], marks)
    return LineTable(tuple(place_of), pieces[np.argsort(pieces["start"], kind="stable")], marks)


def in_tree(path: str, objects: str) -> str:
    """The path relative to the source tree, which the object directory lies in.

    `objects` is the object directory, empty where the path starts there.
    """
    path = posixpath.normpath(path)
    if objects:
        path = posixpath.relpath(path, objects) if path.startswith(f"{posixpath.dirname(objects)}/") else path
    if path.startswith("/"):
        return path
    return path.removeprefix("../") if path.startswith("../") else f"{GENERATED}{path}"


def _marks(pieces: NDArray[Any]) -> NDArray[Any]:
    """Those of no length, each once."""
    marks = pieces[pieces["start"] == pieces["end"]]
    marks = marks[np.lexsort((marks["line"], marks["file"], marks["start"]))]
    same = np.logical_and.reduce([marks[key][1:] == marks[key][:-1] for key in ("start", "file", "line")])
    once: NDArray[Any] = marks[np.concatenate(([True], ~same))] if len(marks) else marks
    return once


def _begun(pieces: NDArray[Any], marks: NDArray[Any]) -> NDArray[Any]:
    """The pieces; where a mark says that their line begins, they begin it."""
    rows = np.concatenate((marks, pieces))
    is_mark = np.arange(len(rows)) < len(marks)
    order = np.lexsort((~is_mark, rows["line"], rows["file"], rows["start"]))
    ordered = rows[order]
    same = np.logical_and.reduce([ordered[key][1:] == ordered[key][:-1] for key in ("start", "file", "line")])
    behind = order[1:][same & is_mark[order][:-1]]
    rows["begins"][behind] = True
    begun: NDArray[Any] = rows[len(marks) :]
    return begun
