"""mmtests' comparison of kernels: rows like `Amean     1      0.7450 (   0.00%)      0.7120 *   4.43%*`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from kdyno.base.measurement import Direction
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import last_place
from kdyno.measure.readers.source import FileSource

TITLE = "mmtests' comparison"
_NUMBER = r"-?\d++(?:\.\d++)?+"
_CELL = re.compile(rf"(?<![\d.])(?P<value>{_NUMBER}) +[(*] *{_NUMBER}%[)*]")
_NAMES = re.compile(r"^ {8,}\S+(?: +\S+)* *$")
_RULE = re.compile(r"[-=\s]+")
_MEANS: dict[str, Direction] = {"amean": "lower", "bamean": "lower", "hmean": "higher", "bhmean": "higher"}
"""The mean that mmtests takes of times, and that of rates."""
_DEVIATION = "stddev"
LINE_LENGTH = 1000


def recognises(source: FileSource) -> bool:
    lines = source.head.splitlines()
    rows = filter(None, (_row(line[:LINE_LENGTH]) for line in lines))
    return any(row.kind.lower() in _MEANS for row in rows)


def read(source: FileSource) -> ProgramOutput:
    """Read the mean of every row, with the standard deviation of the row `Stddev` with its name. Raise Broken."""
    title, names = "", list[Sequence[str]]()
    means: dict[tuple[str, str], tuple[str, list[str], Sequence[str]]] = {}
    deviations: dict[str, list[str]] = {}
    others: dict[str, None] = {}
    for line in (line[:LINE_LENGTH] for line in source.text.splitlines()):
        row = _row(line)
        if row:
            kind, cells, label = row.kind, row.cells, f"{title} {row.name}".strip()
            if kind.lower() in _MEANS:
                means[label, kind] = kind, cells, _variants(names, len(cells))
            elif kind.lower() == _DEVIATION:
                deviations[label] = cells
            else:
                others[kind] = None
        elif _RULE.fullmatch(line):
            continue
        elif _NAMES.match(line):
            names.append(line.split())
        elif line.strip():
            title, names = line.strip(), []
    if any(not variants for _, _, variants in means.values()):
        raise Broken(file=source.shown, format=TITLE, why="the lines above the rows don't name every column")
    series = []
    for (label, _), (kind, cells, variants) in means.items():
        own = deviations.get(label, [])
        for place, (variant, mean) in enumerate(zip(variants, cells, strict=True)):
            sd = float(own[place]) / float(mean) if place < len(own) and float(mean) > 0 else None
            direction = _MEANS[kind.lower()]
            name = label if sum(other == label for other, _ in means) == 1 else f"{label} {kind}"
            series.append(
                FileSeries(name, "", (float(mean),), sd=sd, direction=direction, variant=variant, step=last_place(mean))
            )
    usable, unusable = positive(series)
    note = f"rows that weren't read, since they are not means: {', '.join(others)}"
    return ProgramOutput(usable, (*unusable, note) if others else unusable)


class _MmtestsRow(NamedTuple):
    kind: str
    """What its values are: Amean, Stddev, ..."""
    name: str
    cells: list[str]


def _row(line: str) -> _MmtestsRow | None:
    """Return the parts of a row; None for any other line."""
    cells = list(_CELL.finditer(line))
    if not cells or not line[0].isalpha():
        return None
    kind, _, name = line[: cells[0].start()].partition(" ")
    return _MmtestsRow(kind, name.strip(), [cell["value"] for cell in cells])


def _variants(names: Sequence[Sequence[str]], columns: int) -> Sequence[str]:
    """Return the names of the columns: their lines, joined as mmtests cut them; empty if they aren't as many."""
    if not names or any(len(line) != columns for line in names):
        return ()
    return ["-".join(parts) for parts in zip(*names, strict=True)]
