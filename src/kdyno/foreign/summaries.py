"""Putting tables of means together."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from kdyno.foreign import units
from kdyno.foreign.errors import MixedUnits, NothingThere, SummaryColumn, SummaryTwice
from kdyno.foreign.gathered import Directions, Gathered
from kdyno.foreign.readings import Published, SummaryTables
from kdyno.foreign.request import JudgeRequest
from kdyno.foreign.roles import FACTORS, PLACES, difference, folded, may_be_a_factor, with_level
from kdyno.foreign.source import Source
from kdyno.judge.checks.published import Printed
from kdyno.judge.observations import Observations, Summary


def gather(files: Sequence[tuple[Source, SummaryTables]], request: JudgeRequest, title: str, excerpt: str) -> Gathered:
    """Put the tables of all files together. Raises NothingThere, MixedUnits and SummaryTwice."""
    published, notes, confounded = _settled([row for _, tables in files for row in tables.published])
    if not published:
        raise NothingThere(file=files[0][0].shown, format=title, excerpt=excerpt)
    columns: dict[str, str] = {}
    for _, tables in files:
        columns |= tables.columns
    directions = Directions(request)
    benchmarks: dict[str, list[Published]] = {}
    for row in published:
        benchmarks.setdefault(row.benchmark, []).append(row)
    observations = tuple(_observed(benchmark, rows, directions) for benchmark, rows in benchmarks.items())
    return Gathered(
        observations=observations,
        notes=(*notes, *directions.notes),
        columns=columns,
        boots="a table of means doesn't say how many boots its values come from",
        published=tuple(published),
        confounded=confounded,
        claims=tuple((grid, source.shown) for source, tables in files for grid in tables.claims),
    )


def _settled(rows: Sequence[Published]) -> tuple[list[Published], tuple[str, ...], tuple[str, ...]]:
    """Make known factors that vary within a variant and benchmark part of the benchmark's name.

    Returns the rows, notes on those factors, and sentences on columns that differ with the variant.
    Raises SummaryColumn where rows of one variant and benchmark differ in another column.
    """
    rows, notes, confounded = list(rows), [], []
    for column in dict.fromkeys(column for row in rows for column in row.left):
        cells: dict[tuple[str, str], set[str]] = {}
        of_benchmark: dict[str, set[str]] = {}
        of_variant: dict[str, dict[str, None]] = {}
        for row in rows:
            level = row.left.get(column, "")
            cells.setdefault((row.benchmark, row.variant), set()).add(level)
            of_benchmark.setdefault(row.benchmark, set()).add(level)
            of_variant.setdefault(row.variant, {})[level] = None
        if all(len(levels) == 1 for levels in cells.values()):
            if folded(column) in PLACES and any(len(levels) > 1 for levels in of_benchmark.values()):
                confounded.append(difference(column, {variant: list(own) for variant, own in of_variant.items()}))
        elif folded(column) in FACTORS:
            notes.append(f"each value of {column} is compared by itself")
            rows = [
                replace(row, benchmark=with_level(row.benchmark, column, row.left[column]))
                if column in row.left
                else row
                for row in rows
            ]
    _require_single(rows)
    return rows, tuple(notes), tuple(confounded)


def _require_single(rows: Sequence[Published]) -> None:
    """Raise SummaryColumn where rows of one variant and benchmark differ in a column that may tell them apart."""
    cells: dict[tuple[str, str], list[Published]] = {}
    for row in rows:
        cells.setdefault((row.benchmark, row.variant), []).append(row)
    for (benchmark, variant), own in cells.items():
        for column in own[0].left if len(own) > 1 else ():
            if may_be_a_factor(column, list({row.left.get(column, "") for row in own})):
                named = f"{own[0].benchmark_column},{column}".removeprefix(",")
                raise SummaryColumn(benchmark=benchmark, variant=variant, column=column, columns=shlex.quote(named))


def _observed(benchmark: str, rows: Sequence[Published], directions: Directions) -> Observations:
    unit = rows[0].unit
    groups, step = {}, 0.0
    for row in rows:
        factor = units.factor(row.unit, unit)
        if factor is None:
            raise MixedUnits(benchmark=benchmark, unit=unit, other=row.unit)
        if row.variant in groups:
            raise SummaryTwice(benchmark=benchmark, variant=row.variant)
        low, high = Printed(row.mean).ends
        step = max(step, (high - low) * factor)
        groups[row.variant] = Summary(mean=float(row.mean) * factor, sd=float(row.sd) * factor, n=row.n)
    direction = directions.of(benchmark, unit, rows[0].direction)
    return Observations(
        benchmark=benchmark,
        unit=units.shown(unit),
        direction=direction,
        description=benchmark,
        groups=groups,
        quantity=units.quantity(unit, benchmark, direction),
        step=step,
    )
