"""The execution count of each source line, and whether all of its code was executed.

The compiler makes code of a line in several places: separate pieces, and copies where a function was inlined or cloned.
The count of a copy is the highest count of its pieces: a line that runs once executes each of them once, and the
condition of a loop once more than its body. Copies run independently, so their counts are added.

A line was executed *fully* if at least one copy was executed completely, and each of its conditional branches went both
ways; *partly* if it ran, but no copy fulfils that. Code that other copies left out doesn't count: one of a hundred
inlined copies tests a function equally well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.profile.functions import NOWHERE
from kdyno.understand.coverage.executions import Executions
from kdyno.understand.coverage.functions import CodeParts
from kdyno.understand.coverage.line_table import LineTable

NEVER, PARTLY, FULLY = range(3)
COPY = np.dtype(
    [
        *(("file", "<u4"), ("line", "<u4"), ("owner", "<u4"), ("copy", "<i8")),
        *(("count", "<u8"), ("begins", "?"), ("whole", "?")),
    ]
)
"""The code of a line in one copy; `owner` is an index of LineCoverage.owners."""
LINE = np.dtype(
    [("file", "<u4"), ("line", "<u4"), ("count", "<u8"), ("state", "u1"), ("copies", "<u4"), ("executed", "<u4")]
)
"""A line. `copies` counts its code in different functions or inlined at different calls, `executed` those that ran."""

MARK = -1
"""The copy number of a line that ran at its begin, at code of another line."""

CopiesOf = Callable[[Sequence[int]], list[int]]
"""Returns for addresses of instructions numbers that are equal for one inlined copy."""


@dataclass(frozen=True, eq=False)
class LineCoverage:
    """All lines that have code, by file and line."""

    files: tuple[str, ...]
    lines: NDArray[Any]
    """The lines, of dtype LINE."""
    copies: NDArray[Any]
    """The copies, of dtype COPY, by file and line."""
    pieces: NDArray[Any]
    """The pieces of code and the lines that only begin at an address, of dtype COPY."""
    owners: tuple[str, ...]
    """The names of functions that contain the code, inlined or not."""


def line_coverage(table: LineTable, parts: CodeParts, executed: Executions, copies_of: CopiesOf) -> LineCoverage:
    """Return the coverage of all lines. Code outside of all functions is left out."""
    owner_of, owners = _owners(parts)
    pieces, owned = _inside(table.pieces, parts, owner_of)
    rows = np.zeros(len(pieces), COPY)
    rows["file"], rows["line"], rows["owner"] = pieces["file"], pieces["line"], owned
    rows["count"], rows["whole"] = _measured(pieces, executed)
    rows["begins"] = pieces["begins"]
    rows["copy"] = _copies(rows, pieces["start"], copies_of)
    marks = _marked(table.marks, rows, parts, owner_of, executed)
    rows["copy"][np.isin(_packed(rows), _packed(marks))] = MARK
    rows = np.concatenate((rows, marks))
    rows = rows[np.lexsort((rows["copy"], rows["owner"], rows["line"], rows["file"]))]
    copies = _grouped(rows)
    return LineCoverage(table.files, _lines(copies), copies, rows, owners)


def _owners(parts: CodeParts) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the owner of each part, and the names of owners. A part that was split off belongs to its function."""
    numbers: dict[tuple[str, str], int] = {}
    keys = [(part.file, part.symbol.partition(".cold")[0]) for part in parts.parts]
    owner_of = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    return owner_of, tuple(symbol for _, symbol in numbers)


def _inside(
    pieces: NDArray[Any], parts: CodeParts, owner_of: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the pieces within functions, and their owners."""
    indices = parts.find(pieces["start"])
    is_inside = indices != NOWHERE
    return pieces[is_inside], owner_of[indices[is_inside]] if len(owner_of) else np.zeros(0, np.int64)


def _measured(pieces: NDArray[Any], executed: Executions) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the highest count in each piece, and whether all of it ran and its branches went both ways."""
    if not len(pieces):
        return np.zeros(0, np.uint64), np.zeros(0, bool)
    first = np.searchsorted(executed.starts, pieces["start"], side="right") - 1
    end = np.searchsorted(executed.starts, pieces["end"], side="left")
    bounds = np.stack((first, end), axis=1).ravel()
    # One more at the end: reduceat accepts no bound after the last element.
    counts = np.maximum.reduceat(np.append(executed.counts, np.uint64(0)), bounds)[::2]
    is_left_out = (executed.counts == 0) & ~executed.is_padding
    left_out_before = np.concatenate(([0], np.cumsum(is_left_out)))
    branches = np.searchsorted(executed.one_way, pieces["end"]) - np.searchsorted(executed.one_way, pieces["start"])
    return counts, (left_out_before[end] == left_out_before[first]) & (branches == 0)


def _copies(rows: NDArray[Any], addresses: NDArray[Any], copies_of: CopiesOf) -> NDArray[np.int64]:
    """Return the copy of each piece. Copies can differ only if an executed function has several pieces of a line."""
    keys = rows[["file", "line", "owner"]]
    order = np.argsort(keys, order=("owner", "file", "line"), kind="stable")
    ordered = keys[order]
    begins = np.concatenate(([True], ordered[1:] != ordered[:-1])) if len(ordered) else np.zeros(0, bool)
    group = np.cumsum(begins) - 1
    sizes, executed_pieces = np.bincount(group), np.bincount(group, weights=rows["count"][order] > 0)
    ambiguous = order[(sizes[group] > 1) & (executed_pieces[group] > 0)]
    copies = np.zeros(len(rows), np.int64)
    if len(ambiguous):
        copies[ambiguous] = copies_of(addresses[ambiguous].tolist())
    return copies


def _marked(
    marks: NDArray[Any], rows: NDArray[Any], parts: CodeParts, owner_of: NDArray[np.int64], executed: Executions
) -> NDArray[Any]:
    """Return the lines that begin in a function where none of their own executed code begins.

    They ran if the code at their begin ran. Their other code in that function belongs to the same copy.
    """
    marks, owned = _inside(marks, parts, owner_of)
    marked = np.zeros(len(marks), COPY)
    marked["file"], marked["line"], marked["owner"], marked["copy"] = marks["file"], marks["line"], owned, MARK
    marked["begins"] = marked["whole"] = True
    marked["count"] = executed.at(marks["start"])
    keys, code_keys = _packed(marked), _packed(rows)
    has_run = np.isin(keys, code_keys[(rows["count"] > 0) & rows["begins"]])
    return marked[~has_run & ((marked["count"] > 0) | ~np.isin(keys, code_keys))]


def _packed(keys: NDArray[Any]) -> NDArray[np.uint64]:
    """Return file, line and owner as one number; line numbers from 2^24 on don't occur in a source."""
    line = np.minimum(keys["line"], np.uint32((1 << 24) - 1)).astype(np.uint64)
    packed: NDArray[np.uint64] = (
        (keys["file"].astype(np.uint64) << np.uint64(44)) | (line << np.uint64(20)) | keys["owner"].astype(np.uint64)
    )
    return packed


def _grouped(rows: NDArray[Any]) -> NDArray[Any]:
    """Return sorted pieces as copies, with the highest count; a copy is whole if all its pieces are."""
    if not len(rows):
        return rows
    first = _firsts(rows, ("file", "line", "owner", "copy"))
    copies = rows[first].copy()
    begin = np.logical_or.reduceat(rows["begins"], first)
    begin_counts = np.maximum.reduceat(np.where(rows["begins"], rows["count"], np.uint64(0)), first)
    copies["count"] = np.where(begin, begin_counts, np.maximum.reduceat(rows["count"], first))
    copies["begins"] = begin
    copies["whole"] = np.logical_and.reduceat(rows["whole"], first)
    return copies


def _lines(copies: NDArray[Any]) -> NDArray[Any]:
    if not len(copies):
        return np.empty(0, LINE)
    first = _firsts(copies, ("file", "line"))
    lines = np.zeros(len(first), LINE)
    lines["file"], lines["line"] = copies["file"][first], copies["line"][first]
    lines["count"] = np.add.reduceat(copies["count"], first)
    is_executed = copies["count"] > 0
    lines["state"] = np.where(
        np.logical_or.reduceat(is_executed & copies["whole"], first),
        FULLY,
        np.where(np.logical_or.reduceat(is_executed, first), PARTLY, NEVER),
    )
    lines["copies"] = np.diff(first, append=len(copies))
    lines["executed"] = np.add.reduceat(is_executed.astype(np.uint32), first)
    return lines


def _firsts(rows: NDArray[Any], keys: Sequence[str]) -> NDArray[np.int64]:
    """Return the indices where the keys of sorted rows change."""
    changes = np.logical_or.reduce([rows[key][1:] != rows[key][:-1] for key in keys])
    return np.concatenate(([0], np.flatnonzero(changes) + 1))
