"""Putting CSV files and summary tables together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kdyno.foreign import claims, long_form, sheet, summary, units
from kdyno.foreign.asked import Asked
from kdyno.foreign.errors import MixedUnits, NothingThere, SummaryTwice
from kdyno.foreign.gathered import Directions, Gathered
from kdyno.foreign.replicates import Measured, measured
from kdyno.foreign.sheet import is_number
from kdyno.foreign.source import Source
from kdyno.foreign.summary import Published
from kdyno.judge.observations import Observations, Summary

OWN = {"block", "run", "seed", "lane", "elapsed", "work"}
"""Columns by which kdyno's own CSV is known: its blocks are boots."""


def gather_rows(sources: Sequence[Source], asked: Asked) -> Gathered:
    """Read CSV files with one value a row. Raises what long_form and replicates raise."""
    frames, told, unused = [], dict[str, str](), dict[str, None]()
    for source in sources:
        frame, roles = long_form.read(source, asked)
        frames.append(frame)
        told.update(roles.shown())
        unused.update(dict.fromkeys(roles.unused))
    own = {*unused, *told} >= OWN
    table = long_form.joined(frames)
    if len(frames) > 1 and "order" in table and all(is_number(str(place)) for place in table["order"].cat.categories):
        table = table.drop(columns="order")  # counted anew in each file, it doesn't say which file came first
    benchmarks, notes = measured(table)
    directions = Directions(asked)
    observations = tuple(
        Observations(
            benchmark=each.benchmark,
            unit=each.unit,
            direction=directions.of(each.benchmark, each.unit, each.better),
            description=each.benchmark,
            groups=each.samples,
        )
        for each in benchmarks
    )
    return Gathered(
        observations=observations,
        notes=(*notes, *_left(unused, own), *directions.notes),
        columns=told,
        boots="" if own else _boots(benchmarks, told),
        days={each.benchmark: each.days for each in benchmarks if each.days},
    )


def gather_summaries(sources: Sequence[Source], asked: Asked) -> tuple[Gathered, list[tuple[sheet.Grid, str]]]:
    """Read tables of means and standard deviations; returns the tables of claims among them as well.

    Raises MixedUnits, SummaryTwice, NothingThere and what sheet and summary raise.
    """
    rows: list[Published] = []
    told: dict[str, str] = {}
    asides = []
    for source in sources:
        for grid in sheet.grids(source):
            if claims.looks_like(grid.header):
                asides.append((grid, source.shown))
            elif summary.is_long(grid.header, asked) or summary.is_wide(tuple(row.cells for row in grid.rows)):
                found, columns = summary.read(grid, source.shown, asked)
                rows += found
                told.update(columns)
    if not rows:
        raise NothingThere(file=sources[0].shown, format="a table of means and standard deviations")
    directions = Directions(asked)
    observations = tuple(
        _observed(benchmark, [row for row in rows if row.benchmark == benchmark], directions)
        for benchmark in dict.fromkeys(row.benchmark for row in rows)
    )
    gathered = Gathered(
        observations=observations,
        notes=directions.notes,
        columns=told,
        boots="a table of means doesn't say how many boots its values come from",
        published=tuple(rows),
    )
    return gathered, asides


def _observed(benchmark: str, rows: Sequence[Published], directions: Directions) -> Observations:
    unit = rows[0].unit
    groups = {}
    for row in rows:
        factor = units.factor(row.unit, unit)
        if factor is None:
            raise MixedUnits(benchmark=benchmark, one=unit, other=row.unit)
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


def _left(unused: Iterable[str], own: bool) -> tuple[str, ...]:
    return (f"columns that weren't used: {', '.join(unused)}",) if unused and not own else ()


def _boots(benchmarks: Sequence[Measured], told: dict[str, str]) -> str:
    if "boot" not in told:
        of = "each block is another boot" if "block" in told else "how many boots these values come from"
        return f"nothing says {'whether ' if 'block' in told else ''}{of}"
    lone = [variant for each in benchmarks for variant, count in each.boots.items() if count == 1]
    return f"only one boot each of {', '.join(dict.fromkeys(lone))}" if lone else ""
