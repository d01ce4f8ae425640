"""Text in columns: CSV with whatever delimiter, and the pipe tables of markdown."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from kdyno.foreign.errors import HugeField, NoHeader, NoRows, RaggedRow
from kdyno.foreign.source import LOOKED_AT, Source

DELIMITERS = ",;\t|"
LONGEST_FIELD = 1000
"""Characters; longer ones are an unclosed quote or not a name."""
_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$")
_MARKS = re.compile(r"\*\*|__|`")


@dataclass(frozen=True)
class Row:
    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """One table, small enough to be held as text."""

    header: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Shape:
    """How a delimited file is written."""

    delimiter: str
    header: tuple[str, ...]
    above: int
    """Lines above the header: comments and blank lines."""
    decimal: str
    """What stands before the fraction: `.`, or `,` where that isn't the delimiter."""
    first: tuple[tuple[str, ...], ...]
    """The first rows, for guessing."""


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def shape_of(source: Source) -> Shape:
    """Find out delimiter and header. Raises NoHeader, and what Source.require_text raises."""
    source.require_text()
    lines = source.head.splitlines()
    above = next((index for index, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    sample = lines[above : above + 30]
    if len(source.data) > LOOKED_AT:
        sample = sample[:-1] or sample  # the last line may be cut
    delimiter = max(DELIMITERS, key=lambda candidate: _agreement(sample, candidate))
    rows = [tuple(cell.strip() for cell in row) for row in csv.reader(sample, delimiter=delimiter) if row]
    header, first = rows[0], tuple(rows[1:])
    if all(is_number(cell) or not cell for cell in header):
        raise NoHeader(file=source.shown)
    comma = delimiter != "," and any(re.fullmatch(r"-?\d+,\d+", cell) for row in first for cell in row)
    return Shape(delimiter, header, above, "," if comma else ".", first)


def rows(source: Source, shape: Shape) -> Iterator[Row]:
    """All rows below the header, with the number of the line that each ends in. Raises HugeField and RaggedRow."""
    reader = csv.reader(io.StringIO(source.text, newline=""), delimiter=shape.delimiter)
    below = False
    try:
        for cells in reader:
            if reader.line_num <= shape.above or not any(cell.strip() for cell in cells):
                continue
            if not below:
                below = True
                continue
            for cell in cells:
                if len(cell) > LONGEST_FIELD:
                    raise HugeField(file=source.shown, line=reader.line_num, size=len(cell))
            if len(cells) != len(shape.header):
                raise RaggedRow(
                    file=source.shown,
                    line=reader.line_num,
                    fields=len(cells),
                    columns=len(shape.header),
                    delimiter=repr(shape.delimiter),
                )
            yield Row(reader.line_num, tuple(cell.strip() for cell in cells))
    except csv.Error as error:
        size = csv.field_size_limit()
        raise HugeField(file=source.shown, line=reader.line_num, size=f"more than {size}") from error


def grids(source: Source) -> list[Grid]:
    """All tables of a file: pipe tables if it has any, else the one that it is. Raises NoRows."""
    source.require_text()
    tables = list(_pipe_tables(source)) if has_pipe_table(source.head) else [_whole(source)]
    if not any(table.rows for table in tables):
        raise NoRows(file=source.shown)
    return tables


def has_pipe_table(text: str) -> bool:
    """Whether there is a row of dashes below a line with a `|`."""
    lines = text.splitlines()
    return any("|" in line and "|" in below and _RULE.match(below) for line, below in pairwise(lines))


def _whole(source: Source) -> Grid:
    shape = shape_of(source)
    return Grid(shape.header, tuple(rows(source, shape)))


def _pipe_tables(source: Source) -> Iterator[Grid]:
    lines = source.text.splitlines()
    at = 0
    while at + 1 < len(lines):
        if "|" not in lines[at] or not ("|" in lines[at + 1] and _RULE.match(lines[at + 1])):
            at += 1
            continue
        header, body = _cells(lines[at]), []
        at += 2
        while at < len(lines) and "|" in lines[at]:
            cells = _cells(lines[at])
            if len(cells) != len(header):
                raise RaggedRow(
                    file=source.shown, line=at + 1, fields=len(cells), columns=len(header), delimiter="a bar"
                )
            body.append(Row(at + 1, cells))
            at += 1
        yield Grid(header, tuple(body))


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return tuple(_MARKS.sub("", cell).strip() for cell in inner.split("|"))


def _agreement(sample: list[str], delimiter: str) -> tuple[bool, int]:
    """How well a delimiter fits: whether it divides every line into equally many fields, and how many."""
    try:
        widths = [len(row) for row in csv.reader(sample, delimiter=delimiter) if row]
    except csv.Error:
        return False, 0
    wide = min(widths, default=0)
    return len(set(widths)) == 1 and wide > 1, widths[0] if widths else 0
