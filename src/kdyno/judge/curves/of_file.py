"""Scaling curves of a CSV file with one value a row, and a column that holds the number of processes."""

from __future__ import annotations

from dataclasses import replace

from kdyno.base.text import format_list
from kdyno.judge.curves.model import ScalingReport, Work
from kdyno.judge.curves.names import count
from kdyno.judge.curves.series import MeasuredSeries, NoCurve, series_of, taxes_of
from kdyno.judge.foreign import baseline as baselines
from kdyno.judge.foreign import rows
from kdyno.judge.foreign.gathered import Gathered
from kdyno.judge.stats.estimate import CONFIDENCE
from kdyno.judge.stats.scaling.levels import LARGEST_N
from kdyno.measure.readers.errors import FileError, UndecidedColumn
from kdyno.measure.readers.formats import csv_rows
from kdyno.measure.readers.readings import LEFT, LongTable
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.roles import FACTORS, SHOWN, find_column, find_roles, fold_name, may_be_a_factor
from kdyno.measure.readers.sheet import Shape, shape_of
from kdyno.measure.readers.source import FileSource, read

COLUMNS: dict[str, Work | None] = {
    "n": None,
    **dict.fromkeys(("processes", "procs", "process", "copies", "p"), "copies"),
    **dict.fromkeys(("jobs", "j", "threads", "cpus", "cpu", "cores", "workers"), "shared"),
    "clients": None,
}
"""Columns that are taken for the number of processes, the likeliest first, and the work of these."""


class NoCountColumn(FileError):
    message = "{file}: no column looks like the number of processes"
    hint = "name it with --by; columns: {columns}"


class BadCount(FileError):
    message = "{file}, column {column!r}: {text!r} is not a number of processes"
    hint = "give whole numbers from 1 to {most:,}; --by COL names another column"


def scaling_of_file(
    name: str, request: JudgeRequest, *, by: str | None, work: Work | None, only: str | None, largest: int | None
) -> ScalingReport:
    """Read FILE, or NAME=FILE, and fit a curve to each workload and variant in it.

    Raise the errors of kdyno.measure.readers.errors and of `series_of`, NoCountColumn, BadCount and NoCurve.
    """
    source = read(name)
    shape = shape_of(source)
    column = find_column(by, shape.header, source.shown) if by else _guess_count_column(shape, source)
    table = _table(source, shape, column, request)
    gathered = rows.gather([table], request)
    measured = _collect_measurements(source, table, column, gathered)
    chosen = work or COLUMNS.get(fold_name(column))
    series, notes = series_of(measured, work=chosen, only=only, largest=largest)
    if not series:
        raise NoCurve(where=source.shown, advice=f"column {column!r} has one n; --by COL names another one")
    baseline, how = baselines.choose(gathered.variants, request.baseline)
    read_as = ", ".join(f"{role} from {taken}" for role, taken in gathered.columns.items() if role != "benchmark")
    several = f"; baseline {baseline}: {how}" if len(gathered.variants) > 1 else ""
    of_boots = (f"replicates may be of one boot: {gathered.boots}",) if gathered.boots else ()
    return ScalingReport(
        title=source.shown,
        measured=f"n from {column}, {read_as}{several}; measured by others, fitted by kdyno",
        confidence=CONFIDENCE,
        notices=(*of_boots, *gathered.notes, *notes),
        baseline=baseline,
        series=tuple(series),
        taxes=tuple(taxes_of(measured, series, baseline)),
        run=None,
        files=(source.shown,),
        sha256=(source.sha256,),
    )


def _guess_count_column(shape: Shape, source: FileSource) -> str:
    """Return the column with the number of processes. Raise NoCountColumn."""
    for name in COLUMNS:
        for column in shape.header:
            if fold_name(column) == name:
                return column
    raise NoCountColumn(file=source.shown, columns=format_list(shape.header, SHOWN))


def _table(source: FileSource, shape: Shape, column: str, request: JudgeRequest) -> LongTable:
    """Return the file, with the number of processes as the last part of every benchmark's name."""
    roles = find_roles(shape, replace(request, pooled=(*request.pooled, column)), source.shown)
    benchmark = [*([roles.columns["benchmark"]] if "benchmark" in roles.columns else []), *roles.further]
    columns = {**request.columns, "benchmark": ",".join([*benchmark, column])}
    table = csv_rows.read(source, replace(request, columns=columns))
    if len(table.frame["variant"].cat.categories) == 1:
        _require_no_factor(table, column, benchmark)
    return table


def _require_no_factor(table: LongTable, column: str, benchmark: list[str]) -> None:
    """Raise UndecidedColumn for a column that would be pooled silently: a lone variant has no other to compare it
    with.
    """
    for remaining in table.frame:
        name = remaining.removeprefix(LEFT)
        if remaining == name or name in (column, *benchmark):
            continue
        levels = [str(level) for level in table.frame[remaining].cat.categories]
        if len(levels) > 1 and (fold_name(name) in FACTORS or may_be_a_factor(name, levels)):
            raise UndecidedColumn(
                column=name,
                count=len(levels),
                levels=format_list(levels),
                variant=str(table.frame["variant"].iloc[0]),
                benchmark=", ".join(benchmark) or table.roles.values[0],
                option=f"--benchmark {','.join([*benchmark, name])}",
                does="makes a curve for each of its values",
                pool=f"--pool {name}",
            )


def _collect_measurements(
    source: FileSource, table: LongTable, column: str, gathered: Gathered
) -> list[MeasuredSeries]:
    """Return the measurements of benchmarks, which are called `sieve, n 4`, or `4` if the file has no other column for
    them; other factors follow.
    """
    is_alone = table.roles.columns["benchmark"] == column
    measured = []
    for observed in gathered.observations:
        head, _, tail = (
            ("", "", observed.benchmark) if is_alone else observed.benchmark.rpartition(f", {column.strip()} ")
        )
        text, _, rest = tail.partition(", ")
        n = count(text)
        if n is None:
            raise BadCount(file=source.shown, column=column, text=text, most=LARGEST_N)
        workload = ", ".join(part for part in (head, rest) if part) or table.roles.values[0]
        for variant in observed.groups:
            if (sample := observed.sample(variant)) is not None:
                measured.append(MeasuredSeries(workload, variant, None, n, observed, sample))
    return measured
