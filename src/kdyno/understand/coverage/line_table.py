"""The line tables of a vmlinux: the source line of each instruction."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.base import debuginfo
from kdyno.base.debuginfo import PIECE, Lines
from kdyno.kernel.vmlinux.checks import require_line_tables


@dataclass(frozen=True, eq=False)
class LineTable:
    """The lines of all code, by address."""

    files: tuple[str, ...]
    """The paths relative to the source tree; generated files begin with GENERATED, and other paths are absolute."""
    pieces: NDArray[Any]
    """The pieces of code, of dtype PIECE and with a positive length."""
    marks: NDArray[Any]
    """Lines that begin at an address that the table then gives to another line, of dtype PIECE: both ends are the
    address."""

    def lines_at(self, addresses: NDArray[Any]) -> list[dict[str, int]]:
        """Return for each address the files with lines that have code or begin there, each with its first line."""
        lines_of: list[dict[str, int]] = [{} for _ in addresses]
        for rows in (self.pieces, self.marks):
            first = np.searchsorted(rows["start"], addresses, side="left").tolist()
            ends = np.searchsorted(rows["start"], addresses, side="right").tolist()
            for lines, start, end in zip(lines_of, first, ends, strict=True):
                for row in rows[start:end]:
                    file, line = self.files[row["file"]], int(row["line"])
                    lines[file] = min(line, lines.get(file, line))
        return lines_of


GENERATED = "o/"
"""The prefix of a file in the object directory."""


def read_line_table(vmlinux: Path) -> LineTable:
    """Read the line tables of a vmlinux. Raises NotAVmlinux, NoLineTables, and what debuginfo.lines raises."""
    require_line_tables(vmlinux)
    return one_table(debuginfo.lines(vmlinux))


def one_table(lines: Lines) -> LineTable:
    """Merge all line tables. Pure."""
    place_of: dict[str, int] = {}
    places = [
        place_of.setdefault(in_tree(posixpath.join(directory, path), directory), len(place_of))
        for directory, path in lines.files
    ]
    pieces = np.concatenate(lines.pieces) if lines.pieces else np.empty(0, PIECE)
    pieces["file"] = np.array(places, np.uint32)[pieces["file"]]
    marks = _marks(pieces)
    pieces = _mark_begins(pieces[pieces["start"] < pieces["end"]], marks)
    return LineTable(tuple(place_of), pieces[np.argsort(pieces["start"], kind="stable")], marks)


def in_tree(path: str, objects: str) -> str:
    """Return the path relative to the source tree, which contains the object directory.

    `objects` is the object directory; empty if the path starts there.
    """
    path = posixpath.normpath(path)
    if objects:
        path = posixpath.relpath(path, objects) if path.startswith(f"{posixpath.dirname(objects)}/") else path
    if path.startswith("/"):
        return path
    return path.removeprefix("../") if path.startswith("../") else f"{GENERATED}{path}"


def _marks(pieces: NDArray[Any]) -> NDArray[Any]:
    """Return the pieces without length, each once."""
    marks = pieces[pieces["start"] == pieces["end"]]
    marks = marks[np.lexsort((marks["line"], marks["file"], marks["start"]))]
    same = np.logical_and.reduce([marks[key][1:] == marks[key][:-1] for key in ("start", "file", "line")])
    once: NDArray[Any] = marks[np.concatenate(([True], ~same))] if len(marks) else marks
    return once


def _mark_begins(pieces: NDArray[Any], marks: NDArray[Any]) -> NDArray[Any]:
    """Return the pieces. A piece begins its line if a mark of that line has the same address."""
    rows = np.concatenate((marks, pieces))
    is_mark = np.arange(len(rows)) < len(marks)
    order = np.lexsort((~is_mark, rows["line"], rows["file"], rows["start"]))
    ordered = rows[order]
    same = np.logical_and.reduce([ordered[key][1:] == ordered[key][:-1] for key in ("start", "file", "line")])
    first_pieces = order[1:][same & is_mark[order][:-1]]
    rows["begins"][first_pieces] = True
    marked: NDArray[Any] = rows[len(marks) :]
    return marked
