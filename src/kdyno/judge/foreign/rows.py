"""Joining tables with one value a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from kdyno.base.text import format_list
from kdyno.judge.foreign.factors import settle_factors
from kdyno.judge.foreign.gathered import Directions, Gathered, missing_note
from kdyno.judge.foreign.replicates import MeasuredBenchmark, sum_up_replicates
from kdyno.judge.stats.compare import FEW
from kdyno.judge.stats.observations import Observations
from kdyno.measure.readers import units
from kdyno.measure.readers.failed_rows import failed_note
from kdyno.measure.readers.frames import join_tables
from kdyno.measure.readers.readings import LEFT, Frame, LongTable
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.roles import LAST_VARIANTS, Roles, fold_name
from kdyno.measure.readers.sheet import is_number

OWN = {"block", "run", "seed", "lane", "elapsed", "work"}
"""Columns by which kdyno's own CSV is recognised: its blocks are boots."""


def gather(tables: Sequence[LongTable], request: JudgeRequest) -> Gathered:
    """Join the tables of all files. Raise MixedUnits and BlockTwice."""
    columns: dict[str, str] = {}
    unused: dict[str, None] = {}
    repeated = _variants_in_several_files(tables)
    files_are_variants = bool(repeated) and all(table.is_named for table in tables)
    for table in tables:
        columns |= table.roles.shown()
        if len(tables) > 1 and (files_are_variants or _is_last_variant(table.roles)):
            columns.pop("variant", None)
        unused |= dict.fromkeys(table.roles.unused)
    own = {*unused, *columns} >= OWN
    frame = join_tables(_separate_files(tables, files_are_variants=files_are_variants))
    if len(tables) > 1 and "order" in frame and all(is_number(str(place)) for place in frame["order"].cat.categories):
        frame = frame.drop(columns="order")  # counted anew in each file, it doesn't say which file came first
    factors = settle_factors(frame, [table.roles for table in tables], own=own)
    for column in factors.used:
        unused.pop(column, None)
    benchmarks, notes = sum_up_replicates(factors.table)
    directions = Directions(request)
    value_columns = {column for table in tables for column in table.roles.values}
    column = value_columns.pop() if len(value_columns) == 1 else ""
    observations = tuple(_make_observations(benchmark, column, directions, own) for benchmark in benchmarks)
    return Gathered(
        observations=observations,
        notes=(
            *factors.notes,
            *notes,
            *dict.fromkeys(note for table in tables for note in table.notes),
            *missing_note(sum((Counter(table.missing) for table in tables), Counter())),
            *_note_failed_rows(tables),
            *_note_pooled_files(repeated if not files_are_variants else []),
            *_note_unused_columns(unused, own),
            *directions.notes,
        ),
        columns=columns,
        boots="" if own else _boots(benchmarks, frame),
        days={benchmark.name: benchmark.days for benchmark in benchmarks if benchmark.days},
        row_ranges={} if len(tables) > 1 else {benchmark.name: benchmark.row_ranges for benchmark in benchmarks},
        summed_up=bool(notes),
        confounded=tuple(factors.confounded),
    )


def _make_observations(benchmark: MeasuredBenchmark, column: str, directions: Directions, own: bool) -> Observations:
    """Return one benchmark for the judge. Numbers of things are exact, and so are kdyno's `own` values."""
    direction = directions.direction_of(benchmark.name, benchmark.unit, benchmark.direction, column)
    quantity = units.quantity(benchmark.unit, f"{benchmark.name} {column}", direction)
    is_exact = own or (quantity == "count" and benchmark.step == 1)
    return Observations(
        benchmark=benchmark.name,
        unit=benchmark.unit,
        direction=direction,
        description=benchmark.name,
        groups=benchmark.samples,
        quantity=quantity,
        step=0.0 if is_exact else benchmark.step,
        readings=benchmark.readings if min(benchmark.boots.values(), default=FEW) < FEW else None,
    )


def _variants_in_several_files(tables: Sequence[LongTable]) -> list[str]:
    """Return the variants of a column that are in files of several names, unless the user named that column."""
    names_by_variant: dict[str, set[str]] = {}
    for table in tables:
        if "variant" in table.roles.columns and "variant" not in table.roles.named:
            for variant in table.frame["variant"].cat.categories:
                names_by_variant.setdefault(str(variant), set()).add(table.name)
    return [variant for variant, names in names_by_variant.items() if len(names) > 1]


def _separate_files(tables: Sequence[LongTable], *, files_are_variants: bool) -> list[Frame]:
    """Return the tables in a form that can be joined: boots of different files are different boots. Files are variants
    unless a column distinguishes them better than `march` or `command`, or if they are said to be; then that column may
    distinguish benchmarks.
    """
    if len(tables) == 1:
        return [tables[0].frame]
    frames = []
    unassigned = dict.fromkeys(column for table in tables for column in table.frame if column.startswith(LEFT))
    for number, table in enumerate(tables):
        frame = table.frame.assign(
            **{column: _constant("", table) for column in unassigned if column not in table.frame}
        )
        if files_are_variants or _is_last_variant(table.roles):
            frame = frame.assign(
                **{LEFT + table.roles.columns["variant"]: frame["variant"]},
                variant=_constant(table.name, table),
            )
        if "boot" in frame:
            frame = frame.assign(boot=frame["boot"].cat.rename_categories(lambda name, n=number: f"{n} {name}"))
        frames.append(frame)
    return frames


def _constant(text: str, table: LongTable) -> Any:
    """Return a column that has one text in all rows."""
    return pd.Categorical.from_codes(np.zeros(len(table.frame), np.int8), [text])


def _is_last_variant(roles: Roles) -> bool:
    return "variant" not in roles.named and fold_name(roles.columns.get("variant", "")) in LAST_VARIANTS


def _note_failed_rows(tables: Sequence[LongTable]) -> tuple[str, ...]:
    """Return the note on rows that failed, by variant."""
    failed = sum((Counter(table.failed) for table in tables), Counter())
    counts = [f"{count:,} of {variant}" for variant, count in failed.items() if count]
    columns = list(dict.fromkeys(status.column for table in tables for status in table.roles.statuses))
    return failed_note(format_list(counts, 8), format_list(columns)) if counts else ()


def _note_pooled_files(variants: Sequence[str]) -> tuple[str, ...]:
    """Return the note on variants whose values come from several files."""
    if not variants:
        return ()
    return (
        f"the values of {format_list(variants, 8)} in several files are taken together; NAME=FILE for each file "
        "compares the files instead",
    )


def _note_unused_columns(columns: Iterable[str], own: bool) -> tuple[str, ...]:
    return (f"columns that weren't used: {format_list(list(columns), 20)}",) if columns and not own else ()


def _boots(benchmarks: Sequence[MeasuredBenchmark], frame: Frame) -> str:
    """Return the unknown facts about the boots."""
    if "boot" in frame:
        lone = [variant for benchmark in benchmarks for variant, count in benchmark.boots.items() if count == 1]
        return f"only one boot each of {', '.join(dict.fromkeys(lone))}" if lone else ""
    if "block" in frame:
        return "nothing says whether each block is another boot"
    return "nothing says how many boots these values come from"
