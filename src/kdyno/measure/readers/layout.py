"""The meaning of the columns of a published table: variants, or benchmarks, or neither."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kdyno.base.text import format_list
from kdyno.measure.readers import units
from kdyno.measure.readers.cells import Cell, cell_of, is_bound, numerals
from kdyno.measure.readers.delimited import ALIKE
from kdyno.measure.readers.errors import (
    MaybeRows,
    MaybeWide,
    NoHeader,
    NoHeading,
    Normalised,
    NotAMeasurement,
    RunsInColumns,
    RunsInRows,
    TwoMarks,
)
from kdyno.measure.readers.headings import (
    MEANS,
    NOT_MEASURED,
    SDS,
    SIZES,
    Meaning,
    is_run,
    is_statistic,
    looks_like_a_variant,
    meaning,
    numbered_runs,
    split_statistic,
)
from kdyno.measure.readers.numerals import Decimal, decimal_of, is_missing
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.roles import FACTORS, LAST_VARIANTS, ROLES, find_column, find_columns, fold_name
from kdyno.measure.readers.sheet import (
    SheetGrid,
    SheetRow,
    header_command,
    is_number,
    last_place,
    shape_of,
    whole_number,
)
from kdyno.measure.readers.source import FileSource

_PLAIN_VARIANTS = frozenset(ROLES["variant"].split()) - {"name"}
_PLAIN_BENCHMARKS = frozenset(ROLES["benchmark"].split()) - {"name", "command", "cmd"}
_MOMENTS = frozenset(("timestamp", "time_stamp", "ts", "epoch", "unix_time"))
_DATES = frozenset((*ROLES["day"].split(), "timestamp", "started"))
ROUNDED = 1e-3
"""The largest error of a ratio that was made before its numbers were rounded, as a share of it."""
LARGEST_VERSION = 30
"""No kernel or compiler has a larger one yet."""
NORMAL = ({(1.0, "")}, {(100.0, "")}, {(100.0, "%")}, {(1.0, "x")}, {(1.0, "×")})
"""What all numbers of a variant are if those of the others are ratios to it."""
_BETWEEN = re.compile(r"[/:÷−-]")
_MADE: tuple[Callable[[float, float], float], ...] = (
    lambda one, other: one / other,
    lambda one, other: 100 * one / other,
    lambda one, other: 100 * (one / other - 1),
    lambda one, other: one - other,
)


@dataclass(frozen=True)
class Layout:
    """The meaning of the columns of one table."""

    decimal: Decimal
    values: tuple[str, ...]
    """Columns with measurements."""
    is_wide: bool
    """Whether each of them is a variant."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """variant, label, benchmark, unit, direction, sd, n -> column."""
    further: tuple[str, ...] = ()
    """Further columns that are part of the benchmark's name."""
    left: tuple[str, ...] = ()
    """Columns without a role that may distinguish rows."""
    ignored: tuple[str, ...] = ()
    """Columns that are made from others, or count."""

    @property
    def runs_commands(self) -> bool:
        """Return whether the variants are commands, which are benchmarks if each file is a variant."""
        return fold_name(self.roles.get("variant", "")) in LAST_VARIANTS


@dataclass(frozen=True)
class _Columns:
    """A table by columns."""

    grid: SheetGrid
    decimal: Decimal
    cells: Mapping[str, Sequence[Cell | None]]
    """The cells of each column in the rows that aren't missing."""

    def is_numeric(self, column: str) -> bool:
        cells = self.cells[column]
        texts = [row.cells[self.grid.header.index(column)] for row in self.grid.rows]
        return (sum(cell is not None for cell in cells) + sum(map(is_bound, texts))) * 2 > len(cells)

    def meaning(self, column: str) -> Meaning:
        """Return the meaning of a column by its name, or else by its cells."""
        by_name = "counter" if fold_name(column) in _MOMENTS else meaning(column)
        cells = [cell for cell in self.cells[column] if cell]
        if by_name in ("", "measured") and cells:
            if all(cell.kind != "value" or (cell.unit == "%" and float(cell.mean) == 0) for cell in cells):
                return "derived"
            if self._compares_two(column):
                return "derived"
            numbers = [cell.mean for cell in cells]
            if len(numbers) > 2 and numbers in ([str(n + first) for n in range(len(numbers))] for first in (0, 1)):
                return "counter"
        return by_name

    def _compares_two(self, column: str) -> bool:
        """Return whether a column is the ratio or the difference of two others, by its name (`after/before`) and its
        numbers.
        """
        return any(
            self._is_made_of(column, pair[0].strip(), pair[1].strip())
            for sign in _BETWEEN.finditer(column)
            if (pair := (column[: sign.start()], column[sign.end() :]))
        )

    def _is_made_of(self, column: str, one: str, other: str) -> bool:
        if one not in self.cells or other not in self.cells:
            return False
        rows = [row for row in zip(self.cells[column], self.cells[one], self.cells[other], strict=False) if all(row)]
        numbers = [tuple(float(cell.mean) for cell in row if cell) for row in rows]
        steps = [last_place(cell.mean) for cell, *_ in rows if cell]
        return bool(rows) and any(
            all(
                b and abs(made(a, b) - it) <= step + ROUNDED * abs(it)
                for (it, a, b), step in zip(numbers, steps, strict=True)
            )
            for made in _MADE
        )

    def has_deviations(self, column: str) -> bool:
        return any(cell and cell.sd for cell in self.cells[column])


def layout_of(grid: SheetGrid, request: JudgeRequest, file: str) -> Layout | None:
    """Decide on the meaning of the columns; return None for a table without numbers.

    Raise NoSuchColumn, TwoMarks, RunsInColumns, NoHeader, and MaybeWide, MaybeRows and NotAMeasurement if only the user
    can decide.
    """
    table = _columns(grid, request, file)
    roles, further, pooled = _assign_named_columns(grid.header, request, file)
    taken = {*roles.values(), *further, *pooled}
    numeric = [column for column in grid.header if column not in taken and table.is_numeric(column)]
    meanings = {column: table.meaning(column) for column in numeric}
    keys = [name for name in numeric if fold_name(name) in FACTORS and meanings[name] in ("", "n", "measured")]
    keys = [name for name in keys if not table.has_deviations(name)]
    candidates = [name for name in numeric if name not in keys and meanings[name] not in NOT_MEASURED]
    values = tuple(find_column(name, grid.header, file) for name in request.values)
    if "mean" in roles:
        values = (roles.pop("mean"),)
    mean = next((name for known in MEANS for name in candidates if fold_name(name) == known), "")
    if not values and mean and not request.wide:
        values = (mean,)
    for role, names in (("sd", SDS), ("n", SIZES)):
        if role not in roles and (values or role == "n"):
            column = next((name for known in names for name in numeric if fold_name(name) == known), "")
            if column and (column not in keys or values):
                roles[role] = column
    spread = next((name for name in numeric if meanings[name] == "sd" and name not in values), "")
    if spread and values:
        roles.setdefault("sd", spread)
    used = {*roles.values(), *further, *pooled, *values}
    texts = [name for name in grid.header if name not in used and (name not in numeric or name in keys)]
    if with_sd := [name for name in candidates if table.has_deviations(name)]:
        candidates = with_sd
    ignored = tuple(name for name in numeric if name not in used and name not in keys and name not in candidates)
    if not values and not request.wide and (runs := numbered_runs(candidates)):
        raise RunsInColumns(file=file, line=grid.line, columns=format_list(runs), values=_option(runs))
    if not values:
        decided = _decide_columns(table, candidates, texts, roles, meanings, request, file)
        if decided is None:
            return None
        values, is_wide = decided
    else:
        is_wide = request.wide
    if not request.values and any(_is_like_its_cells(name, table) for name in values):
        raise NoHeader(file=file, command=header_command(file, len(grid.header), ","))
    if is_wide:
        _require_names(values, grid, file)
        layout = _wide_layout(table, values, texts, roles, further, ignored)
        _require_no_runs(layout, table, request, file)
        if not request.wide:
            _require_no_ratios(values, table, file)
            _require_no_values(values, texts, table, file)
        return layout
    texts = [name for name in texts if name not in values]
    return _long_layout(table, values, texts, roles, further, ignored)


def merge_statistics(grid: SheetGrid) -> tuple[SheetGrid, tuple[str, ...]]:
    """Return the table with the columns `vanilla mean` and `vanilla sd` as one column `vanilla` of cells `12.5 ± 0.3`,
    and the names of the other statistics of these columns, such as `vanilla p99`, which are left out.

    A table in which fewer than two columns have a mean and another statistic is returned as it is: its statistics are
    the rows'.
    """
    split = {name: split_statistic(name) for name in grid.header}
    parts: dict[str, dict[Meaning, str]] = {}
    for name, (stem, kind) in split.items():
        parts.setdefault(stem, {}).setdefault(kind or "mean", name)
    whole = {stem: kinds for stem, kinds in parts.items() if "mean" in kinds and len(kinds) > 1}
    if len(whole) < 2:
        return grid, ()
    used = {name for kinds in whole.values() for kind, name in kinds.items() if kind in ("mean", "sd")}
    others = tuple(name for name, (stem, kind) in split.items() if stem in whole and kind and name not in used)
    place = {name: index for index, name in enumerate(grid.header)}
    kept = [name for name in grid.header if name not in used and name not in others]
    rows = []
    for row in grid.rows:
        merged = [
            _joined_cell(row.cells[place[kinds["mean"]]], row.cells[place[kinds["sd"]]] if "sd" in kinds else "")
            for kinds in whole.values()
        ]
        rows.append(SheetRow(row.line, (*(row.cells[place[name]] for name in kept), *merged)))
    return SheetGrid((*kept, *whole), tuple(rows), grid.line, grid.decimal), others


def _joined_cell(mean: str, sd: str) -> str:
    return mean if is_missing(mean) or is_missing(sd) else f"{mean} ± {sd.removeprefix('±').strip()}"


def require_clear(source: FileSource, request: JudgeRequest) -> None:
    """Raise the question about a lone table that only the user can decide: MaybeWide, MaybeRows or NotAMeasurement."""
    shape = shape_of(source)
    rows = tuple(SheetRow(number, cells) for number, cells in enumerate(shape.first, shape.above + 2))
    if all(len(row.cells) == len(shape.header) for row in rows):
        grid, _ = merge_statistics(SheetGrid(shape.header, rows, shape.above + 1, shape.decimal.mark))
        layout_of(grid, request, source.shown)


def _require_no_ratios(variants: Sequence[str], table: _Columns, file: str) -> None:
    """Raise Normalised if every number of a variant is 1, or 100 %: all others are ratios to it."""
    for name in variants:
        cells = [cell for cell in table.cells[name] if cell]
        parts = {(float(cell.mean), cell.unit) for cell in cells}
        if len(cells) > 1 and parts in NORMAL:
            raise Normalised(
                file=file, line=table.grid.line, column=name, number=f"{cells[0].mean} {cells[0].unit}".strip()
            )


def _option(columns: Sequence[str]) -> str:
    return shlex.quote(",".join(columns))


def _require_names(variants: Sequence[str], grid: SheetGrid, file: str) -> None:
    """Raise NoHeading or NoHeader unless the columns of variants have names."""
    if not all(map(_has_heading, variants)):
        raise NoHeading(file=file, line=grid.line)
    if any(map(_is_a_time, variants)):
        raise NoHeader(file=file, command=header_command(file, len(grid.header), ","))


def _require_no_values(variants: Sequence[str], texts: Sequence[str], table: _Columns, file: str) -> None:
    """Raise MaybeWide if the names may be measurements, the first line of a table without a header: numbers that are no
    versions, or are like those below them, after a name that no column of benchmarks has.
    """
    if not all(map(is_number, variants)) or any(fold_name(name) in _PLAIN_BENCHMARKS for name in texts):
        return
    pairs = [(float(name), float(cell.mean)) for name in variants for cell in table.cells[name] if cell]
    are_alike = all(0 < max(pair) < ALIKE * min(pair) for pair in pairs)
    if are_alike or max(map(float, variants)) > LARGEST_VERSION:
        raise MaybeWide(file=file, line=table.grid.line, columns=format_list(variants), values=_option(variants))


def _require_no_runs(layout: Layout, table: _Columns, request: JudgeRequest, file: str) -> None:
    """Raise RunsInRows if a column numbers runs, and has rows of averages and the like, too."""
    if "benchmark" in request.columns:
        return
    named = layout.roles.get("benchmark", "")
    for place, column in enumerate(table.grid.header):
        names = [row.cells[place] for row in table.grid.rows]
        runs = [name for name in names if not is_statistic(name)]
        has_sums = len(runs) < len(names)
        is_numbered = column == named and len(runs) > 1 and len(numbered_runs(runs)) == len(runs)
        if is_numbered or (is_run(column) and (column == named or (column in layout.ignored and has_sums))):
            raise RunsInRows(file=file, line=table.grid.line, column=column, option=shlex.quote(column))


def _decide_columns(
    table: _Columns,
    candidates: Sequence[str],
    texts: Sequence[str],
    roles: Mapping[str, str],
    meanings: Mapping[str, Meaning],
    request: JudgeRequest,
    file: str,
) -> tuple[tuple[str, ...], bool] | None:
    """Return (the columns with measurements, whether they are variants)."""
    line = table.grid.line
    if not candidates:
        if not meanings:
            return None
        columns = format_list([name for name in meanings if meanings[name] in NOT_MEASURED] or list(meanings))
        raise NotAMeasurement(file=file, line=line, columns=columns)
    measured = [name for name in candidates if meanings[name] in ("measured", "mean")]
    others = [name for name in candidates if name not in measured]
    if request.wide:
        return tuple(candidates), True
    if "variant" in roles or any(fold_name(name) in _PLAIN_VARIANTS for name in texts):
        return tuple(candidates), False
    has_benchmark = "benchmark" in roles or any(fold_name(name) in _PLAIN_BENCHMARKS for name in texts)
    names = [name for name in texts if _may_name_benchmarks(name)]
    deviations = any(map(table.has_deviations, others))
    known = has_benchmark or deviations or any(map(looks_like_a_variant, others))
    if len(others) > 1 and not measured and known and (names or has_benchmark):
        return tuple(others), True
    if len(others) > 1 and not measured:
        raise MaybeWide(file=file, line=line, columns=format_list(others), values=_option(others))
    if names and not has_benchmark:
        raise MaybeRows(file=file, line=line, column=names[0], option=shlex.quote(names[0]))
    if len(others) > 1:
        raise MaybeWide(file=file, line=line, columns=format_list(others), values=_option(candidates))
    return tuple(candidates), False


def _has_heading(column: str) -> bool:
    """Return whether a column has a name of its own, and not only the one that a column without a name is given."""
    return bool(column) and not re.fullmatch(r"column \d+", column)


def _is_a_time(heading: str) -> bool:
    """Return whether the name of a column is a measured time, as in what `time` of a shell prints: `12.34 secs`."""
    cell = cell_of(heading, ".")
    unit = units.find(cell.unit) if cell and "." in cell.mean else None
    return unit is not None and set(unit.dimensions) == {"time"}


def _is_like_its_cells(heading: str, table: _Columns) -> bool:
    """Return whether the name of a column is a measurement like those below it, in the same unit: `514.2 MB/s`."""
    cell = cell_of(heading, table.decimal.mark)
    if cell is None or cell.kind != "value" or units.find(cell.unit) is None:
        return False
    return any(other is not None and other.unit == cell.unit for other in table.cells[heading])


def _may_name_benchmarks(column: str) -> bool:
    """Return whether the rows of a column may be benchmarks: its name is not that of dates."""
    return fold_name(column) not in _DATES


def _columns(grid: SheetGrid, request: JudgeRequest, file: str) -> _Columns:
    numbers = [number for row in grid.rows for index in _measuring(grid) for number in numerals(row.cells[index])]
    decimal = Decimal(request.decimal) if request.decimal else decimal_of(numbers, grid.decimal)
    if decimal is None:
        raise TwoMarks(file=file)
    cells = {
        name: [cell_of(row.cells[index], decimal.mark) for row in grid.rows if not is_missing(row.cells[index])]
        for index, name in enumerate(grid.header)
    }
    return _Columns(grid, decimal, cells)


def _measuring(grid: SheetGrid) -> list[int]:
    """Return the columns whose numbers aren't names, such as versions of kernels."""
    names = _PLAIN_VARIANTS | _PLAIN_BENCHMARKS
    return [index for index, name in enumerate(grid.header) if fold_name(name) not in names]


def _assign_named_columns(
    header: Sequence[str], request: JudgeRequest, file: str
) -> tuple[dict[str, str], list[str], list[str]]:
    """Return (role -> column, further columns of the benchmark, pooled ones), as the user gave them. Raise
    NoSuchColumn.
    """
    roles: dict[str, str] = {}
    further: list[str] = []
    for role in ("variant", "label", "benchmark", "unit", "direction", "mean", "sd"):
        if role in request.columns:
            roles[role], *more = find_columns(role, request.columns[role], header, file)
            further += more
    if request.n and not whole_number(request.n):
        roles["n"] = find_column(request.n, header, file)
    return roles, further, [find_column(name, header, file) for name in request.pooled]


def _long_layout(
    table: _Columns,
    values: tuple[str, ...],
    texts: list[str],
    roles: dict[str, str],
    further: Sequence[str],
    ignored: tuple[str, ...],
) -> Layout:
    """Return the layout of a table with one measurement a row."""
    remaining = [name for name in texts if name not in roles.values() and name not in values]
    for role in ("variant", "label", "benchmark", "unit", "direction"):
        if role not in roles:
            names = ROLES.get(role, role).split()
            column = next((name for known in names for name in remaining if fold_name(name) == known), "")
            if column:
                roles[role] = column
                remaining.remove(column)
    return Layout(table.decimal, values, False, roles, tuple(further), tuple(remaining), ignored)


def _wide_layout(
    table: _Columns,
    values: tuple[str, ...],
    texts: Sequence[str],
    roles: dict[str, str],
    further: Sequence[str],
    ignored: tuple[str, ...],
) -> Layout:
    """Return the layout of a table with one benchmark a row, one variant a column."""
    remaining = [
        name for name in texts if name not in values and name not in roles.values() and _may_name_benchmarks(name)
    ]
    unit = next((name for name in remaining if fold_name(name) in ROLES["unit"].split()), "")
    if unit and "unit" not in roles:
        roles["unit"] = unit
        remaining.remove(unit)
    if "benchmark" not in roles and remaining:
        likely = [name for name in remaining if fold_name(name) in _PLAIN_BENCHMARKS] or remaining
        roles["benchmark"] = likely[0]
        remaining.remove(likely[0])
    named = [name for name in remaining if _has_heading(name)]
    return Layout(table.decimal, values, True, roles, tuple(further), tuple(named), ignored)
