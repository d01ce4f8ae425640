"""How often each line of the source was executed, and whether all of its code was.

The compiler makes code of a line in several places: pieces, apart from each other, and copies, where a function was
inlined or cloned. The count of a copy is the highest of its pieces: a line that runs once has each of them executed
once, and a loop's condition once more than its body. Copies are executed each for itself, so their counts add up.

A line was executed *fully* if all of its code was in at least one copy, and each conditional branch there went both
ways; *partly* if it ran, but no copy did so. What other copies left out doesn't matter: a function that is inlined in a
hundred places is as well tested by one of them.
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
"""Code of a line in one copy; `owner` is a place in LineCoverage.owners."""
LINE = np.dtype(
    [("file", "<u4"), ("line", "<u4"), ("count", "<u8"), ("state", "u1"), ("copies", "<u4"), ("executed", "<u4")]
)
"""`copies` are those in different functions or inlined at different calls; `executed`: how many of them ran."""

MARK = -1
"""The copy of a line that ran where it begins, at code of another line."""

CopiesOf = Callable[[Sequence[int]], list[int]]
"""For addresses of instructions, numbers that are equal for those of one inlined copy."""


@dataclass(frozen=True, eq=False)
class LineCoverage:
    """All lines that have code, by file and line."""

    files: tuple[str, ...]
    lines: NDArray[Any]
    """Of dtype LINE."""
    copies: NDArray[Any]
    """Of dtype COPY, by file and line."""
    pieces: NDArray[Any]
    """The same for each piece of code, and for lines that only begin somewhere."""
    owners: tuple[str, ...]
    """Names of functions that have the code, inlined or not."""


def line_coverage(table: LineTable, parts: CodeParts, executed: Executions, copies_of: CopiesOf) -> LineCoverage:
    """Lines of code outside of all functions are left out."""
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
    """For each part the function that it is of (what was split off belongs to where it is from), and their names."""
    numbers: dict[tuple[str, str], int] = {}
    keys = [(part.file, part.symbol.partition(".cold")[0]) for part in parts.parts]
    owner_of = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    return owner_of, tuple(symbol for _, symbol in numbers)


def _inside(
    pieces: NDArray[Any], parts: CodeParts, owner_of: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The pieces within functions, and the owner of each."""
    indices = parts.find(pieces["start"])
    known = indices != NOWHERE
    return pieces[known], owner_of[indices[known]] if len(owner_of) else np.zeros(0, np.int64)


def _measured(pieces: NDArray[Any], executed: Executions) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The highest count in each piece, and whether all of it ran and its branches went both ways."""
    if not len(pieces):
        return np.zeros(0, np.uint64), np.zeros(0, bool)
    first = np.searchsorted(executed.starts, pieces["start"], side="right") - 1
    behind = np.searchsorted(executed.starts, pieces["end"], side="left")
    bounds = np.stack((first, behind), axis=1).ravel()
    # One more at the end: reduceat takes no bound behind the last element.
    counts = np.maximum.reduceat(np.append(executed.counts, np.uint64(0)), bounds)[::2]
    is_left_out = (executed.counts == 0) & ~executed.is_padding
    before = np.concatenate(([0], np.cumsum(is_left_out)))
    branches = np.searchsorted(executed.one_way, pieces["end"]) - np.searchsorted(executed.one_way, pieces["start"])
    return counts, (before[behind] == before[first]) & (branches == 0)


def _copies(rows: NDArray[Any], addresses: NDArray[Any], copies_of: CopiesOf) -> NDArray[np.int64]:
    """The copy that each piece is of. Only where a function that ran has several pieces of a line can they differ."""
    keys = rows[["file", "line", "owner"]]
    order = np.argsort(keys, order=("owner", "file", "line"), kind="stable")
    ordered = keys[order]
    begins = np.concatenate(([True], ordered[1:] != ordered[:-1])) if len(ordered) else np.zeros(0, bool)
    group = np.cumsum(begins) - 1
    sizes, ran = np.bincount(group), np.bincount(group, weights=rows["count"][order] > 0)
    asked = order[(sizes[group] > 1) & (ran[group] > 0)]
    copies = np.zeros(len(rows), np.int64)
    if len(asked):
        copies[asked] = copies_of(addresses[asked].tolist())
    return copies


def _marked(
    marks: NDArray[Any], rows: NDArray[Any], parts: CodeParts, owner_of: NDArray[np.int64], executed: Executions
) -> NDArray[Any]:
    """Lines that begin in a function where no code of their own did that ran: they ran if the code did that they begin
    at. What else there is of them in that function is of the same copy.
    """
    marks, owned = _inside(marks, parts, owner_of)
    begun = np.zeros(len(marks), COPY)
    begun["file"], begun["line"], begun["owner"], begun["copy"] = marks["file"], marks["line"], owned, MARK
    begun["begins"] = begun["whole"] = True
    begun["count"] = executed.at(marks["start"])
    keys, of_code = _packed(begun), _packed(rows)
    has_run = np.isin(keys, of_code[(rows["count"] > 0) & rows["begins"]])
    return begun[~has_run & ((begun["count"] > 0) | ~np.isin(keys, of_code))]


def _packed(keys: NDArray[Any]) -> NDArray[np.uint64]:
    """File, line and owner as one number; lines from 2^24 on are no lines of a source."""
    line = np.minimum(keys["line"], np.uint32((1 << 24) - 1)).astype(np.uint64)
    packed: NDArray[np.uint64] = (
        (keys["file"].astype(np.uint64) << np.uint64(44)) | (line << np.uint64(20)) | keys["owner"].astype(np.uint64)
    )
    return packed


def _grouped(rows: NDArray[Any]) -> NDArray[Any]:
    """Pieces, in their order, as copies: the highest count, whole if all pieces are."""
    if not len(rows):
        return rows
    first = _firsts(rows, ("file", "line", "owner", "copy"))
    copies = rows[first].copy()
    begin = np.logical_or.reduceat(rows["begins"], first)
    begun = np.maximum.reduceat(np.where(rows["begins"], rows["count"], np.uint64(0)), first)
    copies["count"] = np.where(begin, begun, np.maximum.reduceat(rows["count"], first))
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
    ran = copies["count"] > 0
    lines["state"] = np.where(
        np.logical_or.reduceat(ran & copies["whole"], first),
        FULLY,
        np.where(np.logical_or.reduceat(ran, first), PARTLY, NEVER),
    )
    lines["copies"] = np.diff(first, append=len(copies))
    lines["executed"] = np.add.reduceat(ran.astype(np.uint32), first)
    return lines


def _firsts(rows: NDArray[Any], keys: Sequence[str]) -> NDArray[np.int64]:
    """Where rows with other keys begin; they are sorted by them."""
    changes = np.logical_or.reduce([rows[key][1:] != rows[key][:-1] for key in keys])
    return np.concatenate(([0], np.flatnonzero(changes) + 1))
