"""Tables of means: one a row, or one a cell like `79.800 (0.1076)`, with or without standard deviations and n."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kdyno.base.errors import UserError
from kdyno.base.text import format_list
from kdyno.measure.readers import claims, units
from kdyno.measure.readers.cells import Cell, cell_of
from kdyno.measure.readers.errors import BadValue, MaybeRows, MaybeWide, NoSize, NotAMeasurement, TablesAlike
from kdyno.measure.readers.failed_rows import drop_failed_rows
from kdyno.measure.readers.headings import MEANS, SDS, bare, is_statistic, is_sum, is_summary_of_variants, sums_note
from kdyno.measure.readers.layout import Layout, layout_of, merge_statistics
from kdyno.measure.readers.markup import has_markup_table
from kdyno.measure.readers.numerals import is_missing, tidy
from kdyno.measure.readers.readings import PublishedValue, SummaryTables
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.roles import PLACES, find_column, fold_name, with_level
from kdyno.measure.readers.sheet import (
    SheetGrid,
    SheetRow,
    is_beyond,
    is_number,
    refusal,
    shape_of,
    whole_number,
)
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.tables import grids, has_several_tables

_LAST_WORD = re.compile(r"(?<![ _-])[ _-]+[A-Za-zµ/]+$")
TITLE = "a table of means and standard deviations"


def recognises(source: FileSource, request: JudgeRequest) -> bool:
    if not has_several_tables(source) and source.delimited.form != "text":
        return False
    if has_markup_table(source.head) or has_several_tables(source) or request.wide:
        return True
    shape = shape_of(source)
    if _has_means(shape.header, request):
        return True
    grid = SheetGrid(shape.header, tuple(SheetRow(number, cells) for number, cells in enumerate(shape.first, 2)))
    if any(len(row.cells) != len(grid.header) for row in grid.rows):
        return False
    try:
        grid, _ = drop_failed_rows(grid, request, source.shown)
        layout = layout_of(merge_statistics(grid)[0], request, source.shown)
    except UserError:
        return False
    return layout is not None and layout.is_wide


def read(source: FileSource, request: JudgeRequest) -> SummaryTables:
    """Read all tables of a file, of either form; those of published statistics are kept for checking.

    Raise NoRows, TooLarge, NoSuchColumn, NoSize and BadValue; for a file without a readable table, the fault of the
    first.
    """
    read_tables: list[_Table] = []
    statistics, unclear = [], []
    for grid in grids(source):
        if claims.looks_like(grid.header):
            statistics.append(grid)
            continue
        grid, failed = drop_failed_rows(grid, request, source.shown)  # noqa: PLW2901
        grid, others = merge_statistics(grid)  # noqa: PLW2901
        try:
            layout = layout_of(grid, request, source.shown)
        except (MaybeWide, MaybeRows, NotAMeasurement) as error:
            unclear.append((grid.line, error))
            continue
        if layout is not None:
            layout = replace(layout, ignored=(*layout.ignored, *others))
            table = _Table(grid, layout, request, source, list(failed))
            table.published.extend(table.column_measurements() if layout.is_wide else table.row_measurements())
            read_tables.append(table)
    if unclear and not read_tables and not statistics:
        raise unclear[0][1]
    _require_apart(read_tables, source.shown)
    columns: dict[str, str] = {}
    missing: Counter[str] = Counter()
    notes: dict[str, None] = {}
    for table in read_tables:
        columns |= table.columns
        missing.update(table.missing)
        notes |= dict.fromkeys(table.notes())
    notes |= {f"the table in line {line} wasn't read: its columns have no known meaning": None for line, _ in unclear}
    published = tuple(row for table in read_tables for row in table.published)
    return SummaryTables(published, columns, tuple(statistics), tuple(notes), missing)


def _require_apart(tables: Sequence[_Table], file: str) -> None:
    """Raise TablesAlike if two tables of a file have the same benchmark of the same variant: what differs between them
    is in their titles at best, and they may be of other conditions.
    """
    line_by_name: dict[tuple[str, str], int] = {}
    for table in tables:
        for benchmark, variant in dict.fromkeys((row.benchmark, row.variant) for row in table.published):
            line = line_by_name.setdefault((benchmark, variant), table.grid.line)
            if line != table.grid.line:
                raise TablesAlike(file=file, first=line, second=table.grid.line, benchmark=benchmark, variant=variant)


def _has_means(header: tuple[str, ...], request: JudgeRequest) -> bool:
    """Return whether there is a column of means and one of standard deviations."""
    return bool(_column(header, request, "mean", MEANS) and _column(header, request, "sd", SDS))


def _column(header: tuple[str, ...], request: JudgeRequest, role: str, names: tuple[str, ...]) -> str:
    if wanted := request.columns.get(role, ""):
        return find_column(wanted, header, "the table")
    return next((column for name in names for column in header if fold_name(column) == name), "")


@dataclass
class _Table:
    """One table that is being read."""

    grid: SheetGrid
    layout: Layout
    request: JudgeRequest
    source: FileSource
    failed: list[str]
    """The note on rows that failed, if there are any."""
    published: list[PublishedValue] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    asides: dict[str, None] = field(default_factory=dict)
    """Texts in brackets that are not standard deviations."""
    sums: list[str] = field(default_factory=list)
    """Rows that are made from others."""

    @property
    def columns(self) -> dict[str, str]:
        """Return the meaning that was found for each column, for the report."""
        roles = self.layout.roles
        benchmark = ", ".join([roles["benchmark"], *self.layout.further]) if "benchmark" in roles else ""
        values = ", ".join(self.layout.values)
        if self.layout.is_wide:
            shown = {"benchmark": benchmark, "mean (sd) by variant": values, "n": roles.get("n", "")}
        else:
            shown = {"mean": values, **roles, "benchmark": benchmark}
        return {role: name for role, name in shown.items() if name}

    def notes(self) -> Iterator[str]:
        yield from self.failed
        if self.layout.ignored:
            yield f"not read, since they are made from other numbers, or count: {format_list(self.layout.ignored, 8)}"
        if self.sums:
            yield sums_note(self.sums)
        if self.asides:
            yield f"texts in brackets weren't read: {format_list([f'({text})' for text in self.asides], 3)}"
        if note := self.layout.decimal.note:
            yield note

    def row_measurements(self) -> Iterator[PublishedValue]:
        """Yield one measurement for each row. Without a column for the variant, all belong to the variant that the file
        is.
        """
        layout, roles = self.layout, self.layout.roles
        for row in self.grid.rows:
            if is_summary_of_variants(own := self._text(row, "variant")) or is_sum(own := self._text(row, "benchmark")):
                self.sums.append(own)
                continue
            for column in layout.values:
                variant = self._text(row, "variant") or self.source.name
                cell = self._cell(row, column, variant)
                if cell is None:
                    continue
                own = self._text(row, "benchmark")
                several = len(layout.values) > 1
                name = f"{own} {column}" if own and several else own or column
                sd = self._deviation(row, cell, column)
                yield PublishedValue(
                    benchmark=self._with_further(name, row),
                    variant=variant,
                    label=self._text(row, "label") or cell.label,
                    mean=cell.mean,
                    sd=sd,
                    n=self._size(row, variant, cell) if sd else 1,
                    unit=self._text(row, "unit") or cell.unit or self.request.unit or units.unit_of_column(column),
                    direction=self._text(row, "direction"),
                    left={name: self._at(row, name) for name in layout.left},
                    benchmark_column=",".join([roles["benchmark"], *layout.further]) if "benchmark" in roles else "",
                    command=variant if layout.runs_commands and "variant" not in self.request.columns else "",
                )

    def column_measurements(self) -> Iterator[PublishedValue]:
        """Yield the measurements of rows that are benchmarks, with columns that are variants."""
        layout, key = self.layout, self.layout.roles.get("benchmark", "")
        statistics = {row.line for row in self.grid.rows if is_statistic(self._text(row, "benchmark"))}
        if len(statistics) == len(self.grid.rows):
            raise NotAMeasurement(
                file=self.source.shown,
                line=self.grid.line,
                columns=format_list([self._text(self.grid.rows[0], "benchmark")]),
            )
        for row in self.grid.rows:
            own = self._text(row, "benchmark")
            if row.line in statistics:
                self.sums.append(own)
                continue
            named = f"{key} {own}" if fold_name(key) in PLACES and is_number(own) else own
            benchmark = self._with_further(named or "value", row)
            for column in layout.values:
                variant = bare_name(column) if self._has_units_in_headings() else column
                cell = self._cell(row, column, variant)
                if cell is None:
                    continue
                sd = self._deviation(row, cell, column, in_cell=True)
                yield PublishedValue(
                    benchmark=benchmark,
                    variant=variant,
                    label=cell.label,
                    mean=cell.mean,
                    sd=sd,
                    n=self._size(row, benchmark, cell) if sd else 1,
                    unit=self._text(row, "unit")
                    or cell.unit
                    or self.request.unit
                    or (units.unit_of_column(column) if self._has_units_in_headings() else "")
                    or (units.unit_of_column(own) if own.endswith((")", "]")) else "")
                    or units.unit_of_column(key),
                    direction="",
                    left={name: self._at(row, name) for name in layout.left},
                    benchmark_column=",".join(name for name in (key, *layout.further) if name),
                )

    def _has_units_in_headings(self) -> bool:
        """Return whether the heads of all variants end in one unit: `generic [ms]`, `tuned [ms]`; or `before_ms`."""
        shown = {units.unit_of_column(name) if _may_end_in_a_unit(name) else "" for name in self.layout.values}
        return len(shown) == 1 and bool(shown.pop())

    def _with_further(self, benchmark: str, row: SheetRow) -> str:
        for column in self.layout.further:
            benchmark = with_level(benchmark, column, self._at(row, column))
        return benchmark

    def _at(self, row: SheetRow, column: str) -> str:
        return row.cells[self.grid.header.index(column)]

    def _text(self, row: SheetRow, role: str) -> str:
        return self._at(row, self.layout.roles[role]) if role in self.layout.roles else ""

    def _cell(self, row: SheetRow, column: str, variant: str) -> Cell | None:
        """Return the measurement in a cell; None if it says that nothing was measured.

        Raise BadValue and BeyondLimits.
        """
        text = self._at(row, column)
        if is_missing(text):
            self.missing[variant] += 1
            return None
        cell = cell_of(text, self.layout.decimal.mark)
        if cell is None or cell.kind != "value" or is_beyond(cell.mean) or float(cell.mean) <= 0:
            raise refusal(self.source.shown, row.line, column, text, cell.mean if cell else "")
        if cell.aside:
            self.asides[cell.aside] = None
        return cell

    def _deviation(self, row: SheetRow, cell: Cell, column: str, *, in_cell: bool = False) -> str:
        """Return the standard deviation in a cell, or in the next column; empty if there is none.

        Raise BadValue and BeyondLimits.
        """
        sd, percent = cell.sd, cell.percent
        own = "" if in_cell else self.layout.roles.get("sd", "")
        if own and not is_missing(self._at(row, own)):
            column, text = own, self._at(row, own)
            beside = cell_of(tidy(text).removeprefix("±").strip(), self.layout.decimal.mark)
            if beside is None:
                raise refusal(self.source.shown, row.line, column, text)
            sd, percent = beside.mean, beside.unit == "%" or "%" in column
        if not sd:
            return ""
        absolute = f"{float(sd) / 100 * float(cell.mean):.9g}" if percent else sd
        for number in (sd, absolute):
            if float(number) < 0 or is_beyond(number):
                raise refusal(self.source.shown, row.line, column, self._at(row, column), number)
        return absolute

    def _size(self, row: SheetRow, what: str, cell: Cell) -> int:
        """Return the number of values of a mean: of its row, else of its cell, else the user's."""
        text = self._text(row, "n")
        if text:
            size = whole_number(text)
            if size is None:
                raise BadValue(file=self.source.shown, line=row.line, column=self.layout.roles["n"], value=text)
        elif cell.size:
            size = whole_number(cell.size)
            if size is None:
                raise BadValue(file=self.source.shown, line=row.line, column="n", value=cell.size)
        else:
            size = whole_number(self.request.n or "")
            if size is None:
                raise NoSize(file=self.source.shown, what=what)
        return size


def bare_name(heading: str) -> str:
    """Return the heading of a column without the unit at its end, in brackets or as its last word, in its own case."""
    if heading.endswith((")", "]")):
        return heading[: len(bare(heading))].strip() or heading
    return _LAST_WORD.sub("", heading)


def _may_end_in_a_unit(heading: str) -> bool:
    """Return whether a heading ends in brackets, or in a unit of time: kernels are called by other words."""
    if heading.endswith((")", "]")):
        return True
    unit = units.find(units.unit_of_column(heading))
    return bool(_LAST_WORD.search(heading)) and unit is not None and "time" in unit.dimensions
