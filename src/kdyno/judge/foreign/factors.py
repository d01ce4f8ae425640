"""Columns without a role: a factor that varies within a variant and benchmark must not be pooled silently."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from kdyno.base.arrays import Labels
from kdyno.base.text import format_list
from kdyno.measure.readers.errors import ManyVariants, UndecidedColumn
from kdyno.measure.readers.readings import LEFT, Frame
from kdyno.measure.readers.roles import FACTORS, PLACES, Roles, difference, fold_name, may_be_a_factor, with_level
from kdyno.measure.readers.sheet import is_number

MOST_BENCHMARKS = 2000
TABLE = 1 << 24
"""The most codes for which a table of all of them is cheaper than sorting."""


@dataclass
class SettledTable:
    """A table whose remaining columns can't be factors."""

    table: Frame
    notes: list[str] = field(default_factory=list)
    confounded: list[str] = field(default_factory=list)
    """Sentences on columns that differ with the variant, and never within one."""
    used: list[str] = field(default_factory=list)
    """Columns that became part of the benchmark's name."""


def settle_factors(table: Frame, roles: Sequence[Roles], *, own: bool = False) -> SettledTable:
    """Make known factors that vary part of the benchmark's name, and drop columns that are not factors.

    kdyno's own table has none. Raise UndecidedColumn for a possible factor, and ManyVariants for one with too many
    values.
    """
    result = SettledTable(table)
    unassigned = [column for column in table if column.startswith(LEFT)]
    if own:
        return SettledTable(table.drop(columns=unassigned))
    further = list(dict.fromkeys(LEFT + column for role in roles for column in role.further if LEFT + column in table))
    for column in further:
        result.table = _extend_benchmark_names(result.table, column)
    for column in unassigned:
        if column not in further and fold_name(column.removeprefix(LEFT)) in FACTORS:
            _settle(result, column)
    unknown = [
        column
        for column in unassigned
        if column not in further
        and fold_name(column.removeprefix(LEFT)) not in FACTORS
        and may_be_a_factor(column.removeprefix(LEFT), [str(level) for level in result.table[column].cat.categories])
    ]
    if len(result.table["variant"].unique()) > 1:
        for column in sorted(unknown, key=lambda name: len(result.table[name].cat.categories)):
            _require_none(result.table, column, roles)
    result.table = result.table.drop(columns=unassigned)
    return result


def _settle(result: SettledTable, column: str) -> None:
    """Decide about a column whose name is known."""
    table, name = result.table, column.removeprefix(LEFT)
    cells, count = codes_of(table, ["benchmark", "variant"])
    pairs, pair_count = _with(cells, table, column)
    varies = pair_count > count
    if varies and _belongs_to_blocks(table, column):
        return
    if not varies or not _is_shared(table, column):
        if fold_name(name) in PLACES and _differs(table, column):
            result.confounded.append(_confounding_sentence(table, column))
        return
    result.table = _extend_benchmark_names(table, column)
    result.used.append(name)
    once = len(pairs) == pair_count
    other = (
        f"--block {shlex.quote(name)} compares within each"
        if once
        else f"--pool {shlex.quote(name)} takes all together"
    )
    result.notes.append(f"each value of {name} is compared separately ({_levels(table, column)}); {other}")


def _require_none(table: Frame, column: str, roles: Sequence[Roles]) -> None:
    """Raise UndecidedColumn for a column with values that come again and again within a variant and benchmark."""
    cells, count = codes_of(table, ["benchmark", "variant"])
    _, pair_count = _with(cells, table, column)
    if pair_count == count or _belongs_to_blocks(table, column):
        return
    if all(is_number(str(level)) for level in table[column].cat.categories):
        replicates = [role for role in ("block", "boot") if role in table]
        within, _ = codes_of(table, ["benchmark", "variant", *replicates])
        _, once = _with(within, table, column)
        if once == len(table) or len(table) < 2 * pair_count:
            return
    elif len(table) < 1.5 * pair_count:
        return
    row = table.iloc[_first_varying_row(cells, count, table[column].cat.codes.to_numpy())]
    name = column.removeprefix(LEFT)
    benchmark = next((role.columns["benchmark"] for role in roles if "benchmark" in role.columns), "")
    columns = ",".join([benchmark, *roles[0].further] if benchmark else roles[0].further)
    shared = _is_shared(table, column)
    raise UndecidedColumn(
        column=name,
        count=len(table[column].unique()),
        levels=_levels(table, column),
        variant=str(row["variant"]),
        benchmark=str(row["benchmark"]),
        option=_option("benchmark", f"{columns},{name}" if columns else name) if shared else _option("boot", name),
        does="compares each of its values separately" if shared else "counts each of its values once",
        pool=_option("pool", name),
    )


def _first_varying_row(cells: Labels, count: int, levels: Labels) -> int:
    """Return the first row of a cell that has several levels."""
    lowest, highest = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    np.minimum.at(lowest, cells, levels)
    np.maximum.at(highest, cells, levels)
    return int(np.argmax((lowest < highest)[cells]))


def _option(option: str, value: str) -> str:
    return f"--{option} {shlex.quote(value)}"


def codes_of(table: Frame, columns: Sequence[str]) -> tuple[Labels, int]:
    """Return a number for each existing combination of these columns, and how many there are."""
    codes, count = _dense(table[columns[0]].cat.codes.to_numpy().astype(np.int64))
    for column in columns[1:]:
        codes, count = _with(codes, table, column)
    return codes, count


def _with(codes: Labels, table: Frame, column: str) -> tuple[Labels, int]:
    return _dense(codes * len(table[column].cat.categories) + table[column].cat.codes.to_numpy())


def _dense(codes: Labels) -> tuple[Labels, int]:
    """Return numbers without gaps, in the same order, and how many there are."""
    largest = int(codes.max(initial=0))
    if largest < TABLE:
        used = np.zeros(largest + 1, bool)
        used[codes] = True
        new_codes = np.cumsum(used) - 1
        return new_codes[codes], int(used.sum())
    used_codes, dense = np.unique(codes, return_inverse=True)
    return dense, len(used_codes)


def _belongs_to_blocks(table: Frame, column: str) -> bool:
    """Return whether each block has one value of a column: variants are compared within blocks anyway."""
    if "block" not in table:
        return False
    blocks, count = codes_of(table, ["benchmark", *(["run"] if "run" in table else []), "block"])
    return _with(blocks, table, column)[1] == count


def _is_shared(table: Frame, column: str) -> bool:
    """Return whether two variants were measured under one value of a column."""
    levels, count = codes_of(table, ["benchmark", column])
    return _with(levels, table, "variant")[1] > count


def _differs(table: Frame, column: str) -> bool:
    benchmarks, count = codes_of(table, ["benchmark"])
    return _with(benchmarks, table, column)[1] > count


def _confounding_sentence(table: Frame, column: str) -> str:
    pairs = table[["variant", column]].drop_duplicates()
    levels: dict[str, list[str]] = {}
    for variant, level in zip(pairs["variant"], pairs[column], strict=True):
        levels.setdefault(str(variant), []).append(str(level))
    return difference(column.removeprefix(LEFT), levels)


def _levels(table: Frame, column: str) -> str:
    return format_list([str(level) or "(none)" for level in table[column].unique()])


def _extend_benchmark_names(table: Frame, column: str) -> Frame:
    """Make the values of a column part of the benchmark's name. Raise ManyVariants."""
    codes, count = codes_of(table, ["benchmark", column])
    name = column.removeprefix(LEFT)
    if count > MOST_BENCHMARKS:
        raise ManyVariants(column=name, count=len(table[column].unique()), role="benchmark")
    first = np.zeros(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    rows = table[["benchmark", column]].iloc[first]
    names = [
        with_level(str(benchmark), name, str(level))
        for benchmark, level in zip(rows["benchmark"], rows[column], strict=True)
    ]
    new_codes, unique = pd.factorize(np.array(names, dtype=object))
    return table.assign(benchmark=pd.Categorical.from_codes(new_codes[codes], unique))
