"""Putting tables of means together."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.foreign import units
from kdyno.foreign.errors import MixedUnits, NothingThere, SummaryTwice
from kdyno.foreign.gathered import Directions, Gathered
from kdyno.foreign.readings import Published, SummaryTables
from kdyno.foreign.request import JudgeRequest
from kdyno.foreign.source import Source
from kdyno.judge.observations import Observations, Summary


def gather(files: Sequence[tuple[Source, SummaryTables]], request: JudgeRequest, title: str) -> Gathered:
    """Put the tables of all files together. Raises NothingThere, MixedUnits and SummaryTwice."""
    published = [row for _, tables in files for row in tables.published]
    if not published:
        raise NothingThere(file=files[0][0].shown, format=title)
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
        notes=directions.notes,
        columns=columns,
        boots="a table of means doesn't say how many boots its values come from",
        published=tuple(published),
        claims=tuple((grid, source.shown) for source, tables in files for grid in tables.claims),
    )


def _observed(benchmark: str, rows: Sequence[Published], directions: Directions) -> Observations:
    unit = rows[0].unit
    groups = {}
    for row in rows:
        factor = units.factor(row.unit, unit)
        if factor is None:
            raise MixedUnits(benchmark=benchmark, unit=unit, other=row.unit)
        if row.variant in groups:
            raise SummaryTwice(benchmark=benchmark, variant=row.variant)
        groups[row.variant] = Summary(mean=float(row.mean) * factor, sd=float(row.sd) * factor, n=row.n)
    return Observations(
        benchmark=benchmark,
        unit=units.shown(unit),
        direction=directions.of(benchmark, unit, rows[0].direction),
        description=benchmark,
        groups=groups,
    )
