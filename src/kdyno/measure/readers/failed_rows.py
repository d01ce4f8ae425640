"""Rows that say that their measurement failed: they are left out, and counted."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kdyno.base.text import format_list
from kdyno.measure.readers.errors import AllFailed, UnknownStatus
from kdyno.measure.readers.readings import Frame
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.roles import COMPARED, find_column, find_columns, fold_name
from kdyno.measure.readers.sheet import SheetGrid
from kdyno.measure.readers.status import StatusColumn, find_status_columns


def drop_failed(
    table: Frame, statuses: Sequence[StatusColumn], variant: str, file: str, name: str
) -> tuple[Frame, Counter[str]]:
    """Return a table without the columns of statuses and the rows that failed, and how many of these each variant had:
    the one in the column `variant`, or `name` if there is no such column.

    Raise UnknownStatus and AllFailed.
    """
    failed = np.zeros(len(table), bool)
    for status in statuses:
        levels = [str(level) for level in table[status.column].cat.categories]
        has_failed = np.array([_has_failed(status, level, file) for level in levels], bool)
        failed |= has_failed[table[status.column].cat.codes.to_numpy()]
    counts = Counter(map(str, table[variant][failed])) if variant else Counter({name: int(failed.sum())})
    if statuses:
        table = table.drop(columns=[status.column for status in statuses])
    if not failed.any():
        return table, Counter()
    if failed.all():
        raise _all_failed(statuses, file)
    return without_rows(table, failed), counts


def without_rows(table: Frame, gone: Any) -> Frame:
    """Return a table without the rows for which an array is true, and without the names that only they have."""
    table = table[~gone].reset_index(drop=True)
    texts = [column for column in table if hasattr(table[column], "cat")]
    return table.assign(**{column: table[column].cat.remove_unused_categories() for column in texts})


def drop_failed_rows(grid: SheetGrid, request: JudgeRequest, file: str) -> tuple[SheetGrid, tuple[str, ...]]:
    """Return a table without its columns of statuses and without the rows that failed, and the note on them.

    Raise NoSuchColumn, UnknownStatus and AllFailed.
    """
    named = [find_column(name, grid.header, file) for name in (*request.pooled, *request.values)]
    for role, name in request.columns.items():
        named += find_columns(role, name, grid.header, file)
    place = {column: index for index, column in enumerate(grid.header) if column not in named}
    cells = {column: [row.cells[index] for row in grid.rows] for column, index in place.items()}
    statuses = find_status_columns({column: fold_name(column) for column in place}, cells, COMPARED)
    if not statuses:
        return grid, ()
    gone = {place[status.column] for status in statuses}
    rows = [
        row
        for row in grid.rows
        if not any(_has_failed(status, row.cells[place[status.column]], file) for status in statuses)
    ]
    if grid.rows and not rows:
        raise _all_failed(statuses, file)
    kept = tuple(
        replace(row, cells=tuple(cell for index, cell in enumerate(row.cells) if index not in gone)) for row in rows
    )
    header = tuple(column for index, column in enumerate(grid.header) if index not in gone)
    failed = len(grid.rows) - len(rows)
    columns = format_list([status.column for status in statuses])
    return replace(grid, header=header, rows=kept), failed_note(str(failed), columns) if failed else ()


def failed_note(counts: str, columns: str) -> tuple[str, ...]:
    """Return the note on rows that failed, as the columns of statuses say."""
    return (f"rows that failed were left out ({columns}): {counts}",)


def _has_failed(status: StatusColumn, text: str, file: str) -> bool:
    """Raise UnknownStatus."""
    has_failed = status.has_failed(text)
    if has_failed is None:
        raise UnknownStatus(file=file, column=status.column, text=text, option=shlex.quote(status.column))
    return has_failed


def _all_failed(statuses: Sequence[StatusColumn], file: str) -> AllFailed:
    columns = [status.column for status in statuses]
    return AllFailed(file=file, columns=format_list(columns), option=" --pool ".join(map(shlex.quote, columns)))
