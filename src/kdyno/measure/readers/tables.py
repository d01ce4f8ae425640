"""All tables of one file, each small enough to be held as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from kdyno.measure.readers.delimited import aligned_blocks
from kdyno.measure.readers.errors import NoRows, TooLarge
from kdyno.measure.readers.markup import has_markup_table, markup_tables
from kdyno.measure.readers.sheet import MOST_ROWS, SheetGrid, rows, shape_of
from kdyno.measure.readers.source import FileSource


def grids(source: FileSource) -> list[SheetGrid]:
    """Return all tables of a file: those of markup if it has any, else the whole file as one.

    Raise NoRows, TooLarge, HugeField, RaggedRow, SpannedCells and ColumnTwice.
    """
    source.require_text()
    tables = list(markup_tables(source) if has_markup_table(source.head) else _aligned_tables(source))
    if not any(table.rows for table in tables):
        raise NoRows(file=source.shown)
    return tables


def has_several_tables(source: FileSource) -> bool:
    """Return whether a text has several tables that are aligned by blanks, judging by its beginning."""
    return source.form == "text" and bool(aligned_blocks(source.head))


def _aligned_tables(source: FileSource) -> Iterator[SheetGrid]:
    """Yield the tables of a text that has several aligned ones, else the whole as one. Lines keep their numbers."""
    blocks = aligned_blocks(source.text) if has_several_tables(source) else []
    for above, block in blocks:
        yield _whole(replace(source, data=("\n" * above + block).encode()))
    if not blocks:
        yield _whole(source)


def _whole(source: FileSource) -> SheetGrid:
    shape = shape_of(source)
    table = tuple(islice(rows(source, shape), MOST_ROWS + 1))
    if len(table) > MOST_ROWS:
        raise TooLarge(file=source.shown, most=MOST_ROWS, what="rows for a table of means")
    return SheetGrid(shape.header, table, shape.above + 1, "." if shape.delimiter == "," else ",")
