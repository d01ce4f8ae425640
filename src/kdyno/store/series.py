"""The values of all runs, for a history of kernels: one number for each boot and benchmark, and where it belongs.

Samples are read by the million, so their digests are not checked, and their rows not made to records. A value that
isn't a number is refused all the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AwareDatetime, BaseModel
from sqlalchemy import Connection, func, select

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import LaneName
from kdyno.base.measurement import UNIT_SCALE, Benchmark
from kdyno.kernel.image import SourceIdentity
from kdyno.store import rows, schema
from kdyno.store.errors import RecordCorrupt
from kdyno.store.records import Fraction
from kdyno.store.url import StoreUrl

BOOTS_AT_ONCE = 2000
"""Boots whose samples are in memory at the same time."""


class RunFacts(Frozen):
    """The parts of a run that decide what its values can be compared with."""

    id: str
    name: str
    created: AwareDatetime
    experiment: str
    seed: int
    lane: LaneName
    machine: dict[str, Any]
    host: dict[str, Any]
    margin: Fraction


class _Toolchain(BaseModel):
    banner: str


class BuiltFrom(BaseModel):
    """The parts of an image's record that name the kernel."""

    source: SourceIdentity
    patches: tuple[str, ...] = ()
    base: str
    toolchain: _Toolchain
    config_sha256: str


class VariantFacts(Frozen):
    """A variant of a run, and what its first image was built from; None without an image."""

    run: str
    name: str
    recipe: dict[str, Any]
    images: tuple[BuiltFrom, ...]


class BootPlaceFacts(Frozen):
    """A place of a run with its boot."""

    run: str
    variant: str
    layout_index: int
    boot: int
    seed: int


@dataclass(frozen=True)
class BootValues:
    """The values of `ok` boots: three columns of one length."""

    boot: NDArray[np.int64]
    """The database's number of the boot."""
    benchmark: NDArray[np.int64]
    """The database's number of the benchmark."""
    value: NDArray[np.float64]
    """The median over the iterations, in the benchmark's unit; positive and finite."""


@dataclass(frozen=True)
class SeriesRows:
    """Everything that a history is made of."""

    runs: dict[str, RunFacts]
    """By id, the oldest first."""
    variants: list[VariantFacts]
    places: list[BootPlaceFacts]
    benchmarks: dict[int, Benchmark]
    """By the database's number."""
    values: BootValues


def read_series(connection: Connection, store: StoreUrl) -> SeriesRows:
    """Return the values of all runs. Raise RecordCorrupt."""
    benchmarks = {}
    for row in connection.execute(select(schema.benchmark)):
        with rows.read(store, f"benchmark {row.id}"):
            benchmarks[row.id] = rows.benchmark_of(row)
    return SeriesRows(
        runs=_runs(connection, store),
        variants=_variants(connection, store),
        places=_places(connection, store),
        benchmarks=benchmarks,
        values=_values(connection, store, benchmarks),
    )


def _runs(connection: Connection, store: StoreUrl) -> dict[str, RunFacts]:
    columns = [schema.run.c[name] for name in RunFacts.model_fields]
    runs = {}
    for row in connection.execute(select(*columns).order_by(schema.run.c.created, schema.run.c.id)):
        with rows.read(store, f"run {row.id}"):
            runs[row.id] = RunFacts(**row._mapping)
    return runs


def _variants(connection: Connection, store: StoreUrl) -> list[VariantFacts]:
    table = schema.variant
    variants = []
    for row in connection.execute(select(table).order_by(table.c.run, table.c.ordinal)):
        with rows.read(store, f"run {row.run}"):
            images = row.images[:1] if isinstance(row.images, list) else row.images
            variants.append(VariantFacts(run=row.run, name=row.name, recipe=row.recipe, images=images))
    return variants


def _places(connection: Connection, store: StoreUrl) -> list[BootPlaceFacts]:
    cell, boot = schema.cell.c, schema.boot.c
    query = (
        select(cell.run, cell.variant, cell.layout_index, boot.id.label("boot"), boot.seed)
        .join_from(schema.cell, schema.boot, cell.key == boot.key)
        .where(boot.status == "ok")
        .order_by(cell.run, cell.position)
    )
    places = []
    for row in connection.execute(query):
        with rows.read(store, f"run {row.run}, a place"):
            places.append(BootPlaceFacts(**row._mapping))
    return places


def _values(connection: Connection, store: StoreUrl, benchmarks: dict[int, Benchmark]) -> BootValues:
    parts = [part for part in _parts(connection, store, benchmarks) if len(part.boot)]
    if not parts:
        return BootValues(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return BootValues(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("boot", "benchmark", "value"))
    )


def _parts(connection: Connection, store: StoreUrl, benchmarks: dict[int, Benchmark]) -> Iterator[BootValues]:
    """Yield the values of some boots at a time."""
    sample = schema.sample.c
    last = connection.execute(select(func.max(schema.boot.c.id))).scalar() or 0
    for first in range(0, last + 1, BOOTS_AT_ONCE):
        query = (
            select(sample.boot, sample.benchmark, sample.elapsed, sample.work, sample.value)
            .where(sample.boot >= first, sample.boot < first + BOOTS_AT_ONCE)
            .order_by(sample.boot, sample.benchmark)
        )
        read = connection.execute(query).all()
        try:
            columns = np.array([tuple(row) for row in read], dtype=np.float64).reshape(-1, 5)
        except (TypeError, ValueError):
            raise RecordCorrupt(
                where=store.where,
                record=f"a sample of the boots {first} to {first + BOOTS_AT_ONCE - 1}",
                why="it is not a number",
            ) from None
        yield _medians(columns, benchmarks)


def _medians(columns: NDArray[np.float64], benchmarks: dict[int, Benchmark]) -> BootValues:
    """Return the median over the iterations for each boot and benchmark; what has no logarithm is left out."""
    boot, number = columns[:, 0].astype(np.int64), columns[:, 1].astype(np.int64)
    elapsed, work, value = columns[:, 2], columns[:, 3], columns[:, 4]
    largest = int(number.max(initial=0)) + 1
    scale, is_cost = np.full(largest, np.nan), np.zeros(largest, dtype=bool)
    for key, benchmark in benchmarks.items():
        if 0 <= key < largest:
            scale[key], is_cost[key] = UNIT_SCALE.get(benchmark.unit, 1.0), benchmark.direction == "lower"
    with np.errstate(divide="ignore", invalid="ignore"):
        read = np.where(is_cost[number], elapsed / work, scale[number] * work / elapsed)
    read = np.where(np.isnan(value), read, value)
    usable = np.isfinite(read) & (read > 0)
    boot, number, read = boot[usable], number[usable], read[usable]
    order = np.lexsort((read, number, boot))
    boot, number, read = boot[order], number[order], read[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(boot) != 0) | (np.diff(number) != 0)][: len(boot)])
    counts = np.diff(np.r_[starts, len(boot)])
    middle = (read[starts + (counts - 1) // 2] + read[starts + counts // 2]) / 2
    return BootValues(boot[starts], number[starts], middle)


def by_boot(values: BootValues) -> dict[int, list[tuple[int, float]]]:
    """Return the benchmarks and the logarithms of the values by boot."""
    grouped: dict[int, list[tuple[int, float]]] = defaultdict(list)
    logs = np.log(values.value).tolist()
    for boot, benchmark, log in zip(values.boot.tolist(), values.benchmark.tolist(), logs, strict=True):
        grouped[boot].append((benchmark, log))
    return dict(grouped)
