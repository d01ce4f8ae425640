"""Joining tables of means."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kdyno.judge.foreign.gathered import Directions, Gathered, missing_note
from kdyno.judge.stats.checks.published import Printed
from kdyno.judge.stats.observations import Observations, ReplicateSample, Summary
from kdyno.measure.readers import units
from kdyno.measure.readers.errors import MixedUnits, NothingThere, SummaryColumn, SummaryTwice
from kdyno.measure.readers.readings import PublishedValue, SummaryTables
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.roles import FACTORS, PLACES, difference, fold_name, may_be_a_factor, with_level
from kdyno.measure.readers.source import FileSource


def gather(
    files: Sequence[tuple[FileSource, SummaryTables]], request: JudgeRequest, title: str, excerpt: str
) -> Gathered:
    """Join the tables of all files. Raise NothingThere, MixedUnits and SummaryTwice."""
    rows = [_interpret_command(row, source, len(files)) for source, tables in files for row in tables.published]
    published, notes, confounded = _settle_factors(rows)
    if not published:
        raise NothingThere(file=files[0][0].shown, format=title, excerpt=excerpt, why="")
    columns: dict[str, str] = {}
    missing: Counter[str] = Counter()
    for source, tables in files:
        columns |= tables.columns
        missing.update({(source.name if len(files) > 1 else name): n for name, n in tables.missing.items()})
    if len(files) > 1 and any(row.command for _, tables in files for row in tables.published):
        columns["benchmark"] = columns.pop("variant")
    directions = Directions(request)
    benchmarks: dict[str, list[PublishedValue]] = {}
    for row in published:
        benchmarks.setdefault(row.benchmark, []).append(row)
    observations = tuple(_make_observations(benchmark, rows, directions) for benchmark, rows in benchmarks.items())
    own_notes = dict.fromkeys(note for _, tables in files for note in tables.notes)
    return Gathered(
        observations=observations,
        notes=(*notes, *own_notes, *missing_note(missing), *directions.notes),
        columns=columns,
        boots="a table doesn't say how many boots its values come from",
        published=tuple(published),
        confounded=confounded,
        claims=tuple((grid, source.shown) for source, tables in files for grid in tables.claims),
    )


def _interpret_command(row: PublishedValue, source: FileSource, files: int) -> PublishedValue:
    """Return a row with the meaning of its command: the variant of a lone file, the benchmark of several."""
    if files == 1 or not row.command:
        return row
    benchmark = f"{row.command} {row.benchmark}" if row.benchmark_column else row.command
    return replace(row, benchmark=benchmark, variant=source.name, command="")


def _settle_factors(rows: Sequence[PublishedValue]) -> tuple[list[PublishedValue], tuple[str, ...], tuple[str, ...]]:
    """Make known factors that vary within a variant and benchmark part of the benchmark's name.

    Return the rows, notes on those factors, and sentences on columns that differ with the variant. Raise SummaryColumn
    if rows of one variant and benchmark differ in another column.
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
            if fold_name(column) in PLACES and any(len(levels) > 1 for levels in of_benchmark.values()):
                confounded.append(difference(column, {variant: list(own) for variant, own in of_variant.items()}))
        elif fold_name(column) in FACTORS:
            notes.append(f"each value of {column} is compared separately")
            rows = [
                replace(row, benchmark=with_level(row.benchmark, column, row.left[column]))
                if column in row.left
                else row
                for row in rows
            ]
    _require_single(rows)
    return rows, tuple(notes), tuple(confounded)


def _require_single(rows: Sequence[PublishedValue]) -> None:
    """Raise SummaryColumn if rows of one variant and benchmark differ in a column that may distinguish them."""
    cells: dict[tuple[str, str], list[PublishedValue]] = {}
    for row in rows:
        cells.setdefault((row.benchmark, row.variant), []).append(row)
    for (benchmark, variant), own in cells.items():
        for column in own[0].left if len(own) > 1 else ():
            if may_be_a_factor(column, list({row.left.get(column, "") for row in own})):
                named = f"{own[0].benchmark_column},{column}".removeprefix(",")
                raise SummaryColumn(benchmark=benchmark, variant=variant, column=column, columns=shlex.quote(named))


def _make_observations(benchmark: str, rows: Sequence[PublishedValue], directions: Directions) -> Observations:
    unit, step = rows[0].unit, 0.0
    by_variant: dict[str, list[tuple[float, PublishedValue]]] = {}
    for row in rows:
        factor = units.factor(row.unit, unit)
        if factor is None:
            raise MixedUnits(benchmark=benchmark, unit=unit, other=row.unit)
        low, high = Printed(row.mean).ends
        step = max(step, (high - low) * factor)
        by_variant.setdefault(row.variant, []).append((factor, row))
    direction = directions.direction_of(benchmark, unit, rows[0].direction)
    are_figures = not any(row.sd for row in rows)
    return Observations(
        benchmark=benchmark,
        unit=units.format_unit(unit),
        direction=direction,
        description=benchmark,
        groups=_samples(by_variant) if are_figures else _summaries(benchmark, by_variant),
        quantity=units.quantity(unit, benchmark, direction),
        step=step,
    )


def _samples(by_variant: Mapping[str, Sequence[tuple[float, PublishedValue]]]) -> dict[str, ReplicateSample]:
    """Return figures without a deviation as values."""
    return {
        variant: ReplicateSample(values=np.array([float(row.mean) * factor for factor, row in rows]))
        for variant, rows in by_variant.items()
    }


def _summaries(benchmark: str, by_variant: Mapping[str, Sequence[tuple[float, PublishedValue]]]) -> dict[str, Summary]:
    """Return one mean for each variant. Raise SummaryTwice."""
    summaries = {}
    for variant, rows in by_variant.items():
        if len(rows) > 1:
            raise SummaryTwice(benchmark=benchmark, variant=variant)
        [(factor, row)] = rows
        n = row.n if row.sd else 1
        summaries[variant] = Summary(mean=float(row.mean) * factor, sd=float(row.sd or 0) * factor, n=n)
    return summaries
