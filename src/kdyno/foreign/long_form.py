"""Long tables, one value a row: read into columns by pandas, which does millions of rows in seconds."""

from __future__ import annotations

import io
import math
import warnings
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from pandas.api.types import union_categoricals  # type: ignore[import-untyped]

from kdyno.errors import UserError
from kdyno.foreign import units
from kdyno.foreign.asked import Asked
from kdyno.foreign.errors import BadValue, Broken, EmptyCell, ManyVariants, NoRows
from kdyno.foreign.roles import Roles, find
from kdyno.foreign.sheet import LONGEST_FIELD, Shape, rows, shape
from kdyno.foreign.source import Source

Frame = Any
"""A pandas.DataFrame with the columns `value`, `variant`, `benchmark`, `unit` and those of the other roles found;
all but `value` are categories."""

MOST = {"variant": 50, "benchmark": 2000}
CHUNK = 1 << 18
"""Rows that are held as text."""


def read(source: Source, asked: Asked) -> tuple[Frame, Roles]:
    """Read one file. One without a column for the variant is all one variant, that of its name.

    Raises NoHeader, NoRows, NoColumn, NoSuchColumn, RaggedRow, HugeField, BadValue, EmptyCell and ManyVariants.
    """
    found = shape(source)
    roles = find(found, asked, source.shown)
    table = _frame(source, found, roles)
    if not len(table):
        raise NoRows(file=source.shown)
    _require_good(source, found, roles, table)
    parts = []
    for column in roles.values:
        part = pd.DataFrame({role: table[name] for role, name in roles.columns.items()})
        part["value"] = table[column]
        if "variant" not in part:
            part["variant"] = pd.Categorical.from_codes(np.zeros(len(part), np.int8), [source.name])
        if "unit" not in part:
            unit = asked.unit or units.of_column(column)
            part["unit"] = pd.Categorical.from_codes(np.zeros(len(part), np.int8), [unit])
        part["benchmark"] = _benchmark(part, column, len(roles.values) > 1)
        parts.append(part)
    whole = joined(parts)
    for role, most in MOST.items():
        if len(whole[role].cat.categories) > most:
            name = roles.columns.get(role, role)
            raise ManyVariants(column=name, count=len(whole[role].cat.categories), role=role)
    return whole, roles


def joined(parts: list[Frame]) -> Frame:
    """Put tables one below the other; columns that not all of them have are left out."""
    if len(parts) == 1:
        return parts[0]
    common = [column for column in parts[0] if all(column in part for part in parts)]
    return pd.DataFrame(
        {
            column: union_categoricals([part[column] for part in parts])
            if isinstance(parts[0][column].dtype, pd.CategoricalDtype)
            else np.concatenate([part[column].to_numpy() for part in parts])
            for column in common
        }
    )


def _frame(source: Source, found: Shape, roles: Roles) -> Frame:
    """The columns that have a role, chunk by chunk: text as such is large, and as categories `6.10` would be 6.1."""
    texts = list(dict.fromkeys(roles.columns.values()))
    kinds: dict[str, Any] = dict.fromkeys(texts, str) | dict.fromkeys(roles.values, np.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            chunks = pd.read_csv(
                io.BytesIO(source.data),
                sep=found.delimiter,
                decimal=found.decimal,
                names=list(found.header),
                skiprows=found.above + 1,
                header=None,
                index_col=False,
                encoding="utf-8-sig",
                dtype=kinds,
                keep_default_na=False,
                na_values={name: [""] for name in kinds},
                skipinitialspace=True,
                chunksize=CHUNK,
            )
            parts = [
                pd.DataFrame({name: chunk[name].astype("category") if name in texts else chunk[name] for name in kinds})
                for chunk in chunks
            ]
    except pd.errors.EmptyDataError as error:
        raise NoRows(file=source.shown) from error
    except (ValueError, pd.errors.ParserWarning) as error:  # of which ParserError is one
        raise _bad(source, found, roles, str(error)) from error
    return joined(parts)


def _require_good(source: Source, found: Shape, roles: Roles, table: Frame) -> None:
    values = all(bool(((table[name] > 0) & (table[name] < np.inf)).all()) for name in roles.values)
    names = all(not table[name].hasnans for name in roles.columns.values())
    short = all(
        max((len(str(each)) for each in table[name].cat.categories), default=0) <= LONGEST_FIELD
        for name in roles.columns.values()
    )
    if not (values and names and short):
        raise _bad(source, found, roles, "a value or a name in it is not one")


def _bad(source: Source, found: Shape, roles: Roles, why: str) -> UserError:
    """Go through a file that is known to have something wrong in it, for an error that names line and column.

    Raises RaggedRow and HugeField itself; `why` is what else is known.
    """
    at = {name: number for number, name in enumerate(found.header)}
    for row in rows(source, found):
        for name in roles.values:
            text = row.cells[at[name]]
            if not _is_good(text.replace(found.decimal, ".")):
                return BadValue(file=source.shown, line=row.line, column=name, value=text)
        for role, name in roles.columns.items():
            if not row.cells[at[name]]:
                return EmptyCell(file=source.shown, line=row.line, column=name, role=role)
    return Broken(file=source.shown, format="CSV", why=why)


def _is_good(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf and "_" not in text
    except ValueError:
        return False


def _benchmark(part: Frame, column: str, several: bool) -> Any:
    """The benchmark of every row; several value columns are several benchmarks."""
    if "benchmark" not in part:
        return pd.Categorical.from_codes(np.zeros(len(part), np.int8), [column])
    if several:
        return part["benchmark"].cat.rename_categories(lambda name: f"{name} {column}")
    return part["benchmark"]
