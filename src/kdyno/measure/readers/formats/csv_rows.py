"""CSV with one value a row, read into columns by pandas, which does millions of rows in seconds."""

from __future__ import annotations

import io
import warnings
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from kdyno.base.errors import UserError
from kdyno.measure.readers import units
from kdyno.measure.readers.cells import Cell, cell_of
from kdyno.measure.readers.errors import AllMissing, Broken, EmptyCell, ManyVariants, MixedUnits, NoRows, TooLarge
from kdyno.measure.readers.failed_rows import drop_failed, without_rows
from kdyno.measure.readers.frames import join_tables
from kdyno.measure.readers.headings import is_sum, is_summary_of_variants, sums_note
from kdyno.measure.readers.numerals import MISSING_SPELLINGS, Decimal, is_missing
from kdyno.measure.readers.readings import LEFT, Frame, LongTable
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.roles import FACTORS, NUMBERING, Roles, find_roles, fold_name
from kdyno.measure.readers.sheet import LARGEST, LEAST, LONGEST_FIELD, Shape, is_number, refusal, rows, shape_of
from kdyno.measure.readers.source import FileSource

MOST = {"variant": 50, "benchmark": 2000}
MOST_ROWS = 10_000_000
CHUNK = 1 << 18
"""Rows that are held as text."""
MOST_LEVELS = 2000
"""A column without a role that has more values than this is not a factor."""
MOST_LEFT = 100
"""Columns without a role that are looked at."""


def read(source: FileSource, request: JudgeRequest) -> LongTable:
    """Read one file. Without a column for the variant, the whole file is one variant with the file's name.

    Raise NoHeader, NoRows, NoColumn, NoSuchColumn, RaggedRow, HugeField, BadValue, EmptyCell, ManyVariants and
    TooLarge.
    """
    source = source.delimited
    shape = shape_of(source)
    if request.decimal:
        shape = replace(shape, decimal=Decimal(request.decimal))
    roles = find_roles(shape, request, source.shown)
    looked_at = _looked_at(shape, roles)
    table, own_units, failed = _frame(source, shape, roles, looked_at)
    if not len(table):
        raise NoRows(file=source.shown)
    _require_good(source, shape, roles, table)
    if any(table[name].hasnans for name in roles.values):
        deque(rows(source, shape), maxlen=0)  # a row that is too short looks like one without a value
    parts = []
    missing: Counter[str] = Counter()
    for column in roles.values:
        part = pd.DataFrame({role: table[name] for role, name in roles.columns.items()})
        part["value"] = table[column]
        part = part.assign(**{LEFT + name: table[name] for name in (*roles.further, *looked_at) if name in table})
        if "variant" not in part:
            part["variant"] = pd.Categorical.from_codes(np.zeros(len(part), np.int8), [source.name])
        if "unit" not in part:
            unit = own_units.get(column) or request.unit or units.unit_of_column(column)
            part["unit"] = pd.Categorical.from_codes(np.zeros(len(part), np.int8), [unit])
        part["benchmark"] = _benchmark(
            part, "value" if roles.runs else column, len(roles.values) > 1 and not roles.runs
        )
        if len(empty := part[part["value"].isna()]):
            missing.update(dict(Counter(map(str, empty["variant"]))))
            part = part[part["value"].notna()].reset_index(drop=True)
            if part.empty:
                raise AllMissing(file=source.shown, column=column)
        parts.append(part)
    whole, sums = _without_sums(join_tables(parts), roles)
    for role, most in MOST.items():
        if len(whole[role].cat.categories) > most:
            name = roles.columns.get(role, role)
            raise ManyVariants(column=name, count=len(whole[role].cat.categories), role=role)
    notes = (sums_note(sums) if sums else "", shape.decimal.note)
    return LongTable(whole, roles, source.name, source.is_named, tuple(filter(None, notes)), missing, failed)


def _without_sums(table: Frame, roles: Roles) -> tuple[Frame, list[str]]:
    """Return a table without the rows that sum up others, by the names in their columns, and these names."""
    sums: list[str] = []
    summing = np.zeros(len(table), bool)
    for role, is_one in (("variant", is_summary_of_variants), ("benchmark", is_sum)):
        if role in roles.columns:
            levels = [str(level) for level in table[role].cat.categories]
            found = np.array([is_one(level) for level in levels], bool)
            sums += [level for level, is_found in zip(levels, found, strict=True) if is_found]
            summing |= found[table[role].cat.codes.to_numpy()]
    if not sums or summing.all():
        return table, []
    return without_rows(table, summing), sums


def _looked_at(shape: Shape, roles: Roles) -> tuple[str, ...]:
    """Return the columns without a role that may be factors, by their names and first rows: fractions are
    measurements.
    """
    place = {name: index for index, name in enumerate(shape.header)}
    columns = []
    for name in roles.unused:
        if fold_name(name) in NUMBERING:
            continue
        cells = [row[place[name]].replace(shape.decimal.mark, ".") for row in shape.first if place[name] < len(row)]
        if fold_name(name) in FACTORS or not any(
            is_number(cell) and not cell.strip("+-").isdecimal() for cell in cells
        ):
            columns.append(name)
    return tuple(sorted(columns, key=lambda name: fold_name(name) not in FACTORS)[:MOST_LEFT])


def _frame(
    source: FileSource, shape: Shape, roles: Roles, looked_at: Sequence[str]
) -> tuple[Frame, Mapping[str, str], Counter[str]]:
    """Return the columns that have a role, and those `looked_at` that have few values; the units with the values; and
    the number of rows of each variant that failed, which are not among them.

    Values that aren't plain numbers, such as `1,079.5` or `5.84 s`, are read as text first, which takes longer.
    """
    variant = roles.columns.get("variant", "")
    try:
        table = _columns(source, shape, roles, looked_at)
        table, failed = drop_failed(table, roles.statuses, variant, source.shown, source.name)
        return table, {}, failed
    except _NotPlain:
        table = _columns(source, shape, roles, looked_at, as_text=True)
    table, failed = drop_failed(table, roles.statuses, variant, source.shown, source.name)
    own_units: dict[str, str] = {}
    for name in roles.values:
        texts = [str(text) for text in table[name].cat.categories]
        cells = [None if is_missing(text) else cell_of(text, shape.decimal.mark) for text in texts]
        written = dict.fromkeys(cell.unit for cell in cells if cell and cell.kind == "value")
        if any(_is_bad(text, cell) for text, cell in zip(texts, cells, strict=True)):
            raise _locate_fault(source, shape, roles, "a value in it is invalid, but no line shows which")
        unit = next(iter(written), "")
        factors = {other: units.factor(other, unit) for other in written}
        if foreign := next((other for other, factor in factors.items() if factor is None), None):
            raise MixedUnits(benchmark=name, unit=unit, other=foreign)
        numbers = np.array([float(cell.mean) * (factors[cell.unit] or 1.0) if cell else np.nan for cell in cells])
        codes = table[name].cat.codes.to_numpy()
        table[name] = np.where(codes < 0, np.nan, numbers[codes])
        own_units[name] = unit
    return table, own_units, failed


class _NotPlain(Exception):
    """pandas can't read the values of a table."""


def _is_bad(text: str, cell: Cell | None) -> bool:
    """Return whether a cell has content that is not a measurement, or is empty."""
    return not is_missing(text) and (cell is None or cell.kind != "value" or bool(cell.sd))


def _columns(
    source: FileSource, shape: Shape, roles: Roles, looked_at: Sequence[str], *, as_text: bool = False
) -> Frame:
    """Read chunk by chunk: plain text takes much memory, and among categories `6.10` would be 6.1. Raise _NotPlain."""
    named = _required_columns(roles)
    statuses = [status.column for status in roles.statuses]
    texts = list(dict.fromkeys((*named, *looked_at, *statuses, *(roles.values if as_text else ()))))
    kinds: dict[str, Any] = {**dict.fromkeys(roles.values, np.float64), **dict.fromkeys(texts, str)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            chunks = pd.read_csv(
                io.BytesIO(source.data),
                sep=shape.delimiter,
                decimal=shape.decimal.mark,
                names=list(shape.header),
                skiprows=shape.above + 1,
                header=None,
                index_col=False,
                encoding="utf-8-sig",
                dtype=kinds,
                keep_default_na=False,
                na_values={**dict.fromkeys(roles.values, MISSING_SPELLINGS), **dict.fromkeys(named, ("",))},
                skipinitialspace=True,
                chunksize=CHUNK,
            )
            parts, count = [], 0
            for chunk in chunks:
                part = pd.DataFrame(
                    {name: chunk[name].astype("category") if name in texts else chunk[name] for name in kinds}
                )
                for name in looked_at:
                    if name in kinds and len(part[name].cat.categories) > MOST_LEVELS:
                        del kinds[name]
                parts.append(part)
                count += len(chunk)
                if count > MOST_ROWS:
                    raise TooLarge(file=source.shown, most=MOST_ROWS, what="rows")
    except pd.errors.EmptyDataError as error:
        raise NoRows(file=source.shown) from error
    except (ValueError, pd.errors.ParserWarning) as error:  # the base class of ParserError
        if not as_text and type(error) is ValueError:
            raise _NotPlain from None
        raise _locate_fault(
            source, shape, roles, "a quote is never closed: the one that opens in line {line}"
        ) from error
    return join_tables([part[list(kinds)] for part in parts])


def _required_columns(roles: Roles) -> list[str]:
    """Return the columns that must have a value in every row, besides the measurements."""
    return list(dict.fromkeys((*roles.columns.values(), *roles.further)))


def _require_good(source: FileSource, shape: Shape, roles: Roles, table: Frame) -> None:
    values = all(
        bool((((table[name] > LEAST) & (table[name] < LARGEST)) | table[name].isna()).all()) for name in roles.values
    )
    texts = [name for name in table if name not in roles.values]
    names = all(not table[name].hasnans for name in texts)
    short = all(
        max((len(str(category)) for category in table[name].cat.categories), default=0) <= LONGEST_FIELD
        for name in texts
    )
    if not (values and names and short):
        raise _locate_fault(source, shape, roles, "a value or a name in it is invalid, but no line shows which")


def _locate_fault(source: FileSource, shape: Shape, roles: Roles, why: str) -> UserError:
    """Go through a faulty file, and return an error that names line and column.

    Raise RaggedRow and HugeField directly. `why` is the reason if no fault is found; `{line}` in it is where the last
    row begins.
    """
    end = begin = shape.above + 1
    place = {name: index for index, name in enumerate(shape.header)}
    for row in rows(source, shape):
        begin, end = end + 1, row.line
        if any(status.has_failed(row.cells[place[status.column]]) for status in roles.statuses):
            continue
        for name in roles.values:
            text = row.cells[place[name]]
            cell = cell_of(text, shape.decimal.mark)
            if not is_missing(text) and not _is_good(text, cell):
                return refusal(source.shown, row.line, name, text, cell.mean if cell else "")
        for role, name in roles.columns.items():
            if not row.cells[place[name]]:
                return EmptyCell(file=source.shown, line=row.line, column=name, role=role)
        for name in roles.further:
            if not row.cells[place[name]]:
                return EmptyCell(file=source.shown, line=row.line, column=name, role="benchmark")
    return Broken(file=source.shown, format="CSV", why=why.format(line=begin))


def _is_good(text: str, cell: Cell | None) -> bool:
    return cell is not None and not _is_bad(text, cell) and LEAST < float(cell.mean) < LARGEST


def _benchmark(part: Frame, column: str, several: bool) -> Any:
    """Return the benchmark of every row; several value columns are several benchmarks."""
    if "benchmark" not in part:
        return pd.Categorical.from_codes(np.zeros(len(part), np.int8), [column])
    if several:
        return part["benchmark"].cat.rename_categories(lambda name: f"{name} {column}")
    return part["benchmark"]
