"""The line tables of a vmlinux: which line of which source each instruction was compiled from."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.base.llvm_tools import MOST_LISTED, find_tool
from kdyno.base.process import output
from kdyno.profile.vmlinux import require_line_tables

TABLE = "\ndebug_line[0x"
DIRECTORY = re.compile(r'^include_directories\[ {0,8}(\d{1,8})\] = "([^"\n]{0,4096})"$', re.MULTILINE)
FILE = re.compile(r'^file_names\[ {0,8}(\d{1,8})\]:\n +name: "([^"\n]{0,4096})"\n +dir_index: (\d{1,8})$', re.MULTILINE)
ROW = re.compile(
    r"^0x([0-9a-f]{16}) +(\d{1,10}) +\d{1,10} +(\d{1,8}) +\d{1,10} +\d{1,10} +(?:\d{1,10} +)?(.*)$", re.MULTILINE
)
"""As llvm-dwarfdump prints it: address, line, column, file, ISA, discriminator, since LLVM 17 an index, flags."""
END = "end_sequence"
SECONDS = 300
PIECE = np.dtype([("start", "<u8"), ("end", "<u8"), ("file", "<u4"), ("line", "<u4"), ("begins", "?")])
"""Code of one line, from its start to before its end; `file` is a place in LineTable.files. `begins`: the line, or a
statement of it, begins there (is_stmt), which isn't so of instructions that the compiler moved."""


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
    """Of a vmlinux with line tables. Raises NotAVmlinux, NoLineTables, LlvmToolMissing and ToolFailed."""
    require_line_tables(vmlinux)
    words = [find_tool("llvm-dwarfdump"), "--debug-line", str(vmlinux)]
    return parse_line_table(output(words, env={"LC_ALL": "C"}, timeout=SECONDS, most=MOST_LISTED))


def parse_line_table(listing: str) -> LineTable:
    """What llvm-dwarfdump lists of all tables, as one. Pure."""
    place_of: dict[str, int] = {}
    parts = []
    for text in listing.split(TABLE)[1:]:
        prologue, _, listed = text.partition("\nAddress ")
        rows = ROW.findall(listed)
        if rows:
            names = _names(prologue)
            files = {number: place_of.setdefault(name, len(place_of)) for number, name in names.items()}
            parts.append(_pieces(rows, files))
    pieces = np.concatenate(parts) if parts else np.empty(0, PIECE)
    marks = _marks(pieces)
    pieces = _begun(pieces[pieces["start"] < pieces["end"]], marks)
    return LineTable(tuple(place_of), pieces[np.argsort(pieces["start"], kind="stable")], marks)


def _names(text: str) -> dict[str, str]:
    """Number of a file in one table -> its path."""
    directories = dict(DIRECTORY.findall(text))
    objects = directories.get("0", "")
    return {
        number: in_tree(posixpath.join(objects, directories.get(directory, ""), name), objects)
        for number, name, directory in FILE.findall(text)
    }


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


def _pieces(rows: list[tuple[str, str, str, str]], files: dict[str, int]) -> NDArray[Any]:
    """The rows of one table, without those that stand for no line."""
    columns = list(zip(*rows, strict=True))
    pieces = np.zeros(len(rows), PIECE)
    pieces["start"] = [int(address, 16) for address in columns[0]]
    pieces["end"][:-1] = pieces["start"][1:]
    pieces["line"] = np.minimum(np.array(columns[1], np.uint64), np.uint64(0xFFFF_FFFF))
    pieces["file"] = [files.get(number, 0) for number in columns[2]]
    is_end = np.array([END in flags for flags in columns[3]])
    is_begun = np.array(["is_stmt" in flags for flags in columns[3]])
    pieces["end"][-1] = pieces["start"][-1]
    pieces["begins"] = is_begun
    known = np.array([number in files for number in columns[2]])
    is_whole = (pieces["end"] > pieces["start"]) | ((pieces["end"] == pieces["start"]) & is_begun)
    kept: NDArray[Any] = pieces[known & ~is_end & is_whole & (pieces["line"] > 0)]
    return kept


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
