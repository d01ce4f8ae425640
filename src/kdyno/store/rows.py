"""Conversions between records and rows of runs and boots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Row, func, insert, select, text

from kdyno.base.measurement import Benchmark, Sample
from kdyno.base.mistakes import first_fault
from kdyno.store import digests, plain_json, schema
from kdyno.store.errors import BootInconsistent, RecordCorrupt
from kdyno.store.records import Boot, BootPlace, BootRecord, RunRecord
from kdyno.store.url import StoreUrl

BOOT_COLUMNS = tuple(name for name in Boot.model_fields if name in schema.boot.c)
PLACE_COLUMNS = tuple(BootPlace.model_fields)
OUTCOMES = ("unsupported", "broken")


@contextmanager
def read(store: StoreUrl, record: str) -> Iterator[None]:
    """Read rows of one record. Raise RecordCorrupt, which names it and the field, for values that kdyno never
    writes.
    """
    try:
        yield
    except ValidationError as error:
        raise _corrupt(store, record, error) from None


def _corrupt(store: StoreUrl, record: str, error: ValidationError) -> RecordCorrupt:
    return RecordCorrupt(where=store.where, record=record, why=first_fault(error))


def digest_of_run(connection: Connection, run: Mapping[str, Any]) -> str:
    """Return the digest of a run's row with its variants and cells."""
    variants, cells = (
        [row._asdict() for row in connection.execute(select(table).where(table.c.run == run["id"]))]
        for table in (schema.variant, schema.cell)
    )
    return digests.digest_run(run, variants, cells)


def require_digest(store: StoreUrl, record: str, row: Row[Any], digest: str) -> None:
    """Raise RecordCorrupt unless this is the digest that was written with a row."""
    if row.sha256 != digest:
        raise RecordCorrupt(where=store.where, record=record, why="its content does not match its SHA-256")


def is_on_record(connection: Connection, run_id: str) -> bool:
    return connection.execute(select(schema.run.c.id).where(schema.run.c.id == run_id)).scalar() is not None


def insert_run(connection: Connection, run: RunRecord, cells: Iterable[tuple[BootPlace, str]]) -> None:
    row, variants, placed = run_row(run), variant_rows(run), cell_rows(run.id, cells)
    connection.execute(schema.run.insert(), row | {"sha256": digests.digest_run(row, variants, placed)})
    connection.execute(schema.variant.insert(), variants)
    if placed:
        connection.execute(schema.cell.insert(), placed)


def insert_boot(connection: Connection, boot: Boot, attempt: int, benchmarks: Sequence[Benchmark]) -> None:
    """Record a boot that was checked, with everything that it described and measured."""
    numbers = benchmark_ids(connection, benchmarks) if benchmarks else []
    row = boot_row(boot, attempt)
    names = dict(zip((benchmark.name for benchmark in benchmarks), numbers, strict=True))
    outcomes = {
        kind: {_storable(name): _storable(why) for name, why in getattr(boot, kind).items()} for kind in OUTCOMES
    }
    row["sha256"] = digests.digest_boot(row, names, boot.samples, outcomes)
    boot_id = connection.execute(schema.boot.insert().returning(schema.boot.c.id), row).scalar_one()
    for table, new in (
        (schema.described, described_rows(boot_id, numbers)),
        (schema.sample, sample_rows(boot_id, boot, names)),
        (schema.outcome, outcome_rows(boot_id, outcomes)),
    ):
        if new:
            connection.execute(table.insert(), new)


def insert_selftest(connection: Connection, run_id: str, created: datetime, found: Mapping[str, Any]) -> None:
    row = {"run": run_id, "created": created, "found": dict(found)}
    connection.execute(schema.selftest.insert(), row | {"sha256": digests.digest_selftest(row)})


def run_row(run: RunRecord) -> dict[str, Any]:
    row = run.model_dump(exclude={"variants"})
    return row | run.model_dump(mode="json", include={"machine", "host", "notices"})


def variant_rows(run: RunRecord) -> list[dict[str, Any]]:
    return [
        {"run": run.id, "ordinal": ordinal, **variant.model_dump(mode="json")}
        for ordinal, variant in enumerate(run.variants)
    ]


def cell_rows(run_id: str, cells: Iterable[tuple[BootPlace, str]]) -> list[dict[str, Any]]:
    return [
        {"run": run_id, "key": key, **{name: getattr(place, name) for name in PLACE_COLUMNS}} for place, key in cells
    ]


def check(boot: Boot, benchmarks: Sequence[Benchmark]) -> None:
    """Raise BootInconsistent if a sample has no described benchmark, or is there twice."""
    names = Counter(benchmark.name for benchmark in benchmarks)
    unknown = {sample.benchmark for sample in boot.samples} - names.keys()
    if unknown:
        raise BootInconsistent(key=boot.key, why=f"the sample names an unknown benchmark, {min(unknown)!r}")
    for name, count in names.most_common(1):
        if count > 1:
            raise BootInconsistent(key=boot.key, why=f"{count} benchmarks are called {name!r}")
    for (name, iteration), count in Counter(
        (sample.benchmark, sample.iteration) for sample in boot.samples
    ).most_common(1):
        if count > 1:
            raise BootInconsistent(key=boot.key, why=f"iteration {iteration} of {name!r} occurs {count} times")


def next_attempt(connection: Connection, key: str) -> int | None:
    """Return the number of the boot's next attempt; None if it is on record as `ok` or `failed`.

    Until the transaction ends, no other one adds a boot with this key: SQLite has one writer at a time anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:key))"), {"key": key})
    of_key = select(schema.boot.c.status).where(schema.boot.c.key == key)
    statuses = list(connection.execute(of_key).scalars())
    return len(statuses) if all(status == "lost" for status in statuses) else None


def benchmark_ids(connection: Connection, benchmarks: Sequence[Benchmark]) -> list[int]:
    """Return the database's numbers of these benchmarks, in their order; those that it doesn't know yet are added."""
    table = schema.benchmark
    of_names = select(table).where(table.c.name.in_([benchmark.name for benchmark in benchmarks]))
    numbers: dict[Benchmark, int] = _numbers(connection.execute(of_names))
    missing = [benchmark for benchmark in benchmarks if benchmark not in numbers]
    if missing:
        if connection.dialect.name == "postgresql":  # others may add the same at this moment
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('kdyno benchmarks'))"))
            numbers = _numbers(connection.execute(of_names))
            missing = [benchmark for benchmark in benchmarks if benchmark not in numbers]
        if missing:
            connection.execute(insert(table), [benchmark.model_dump() for benchmark in missing])
            numbers = _numbers(connection.execute(of_names))
    return [numbers[benchmark] for benchmark in benchmarks]


def _numbers(rows: Iterable[Row[Any]]) -> dict[Benchmark, int]:
    numbers = {}
    for row in rows:
        with suppress(ValidationError):  # an invalid row is not one of these benchmarks
            numbers[benchmark_of(row)] = row.id
    return numbers


def benchmark_of(row: Row[Any]) -> Benchmark:
    return Benchmark(**{name: row._mapping[name] for name in Benchmark.model_fields})


def boot_row(boot: Boot, attempt: int) -> dict[str, Any]:
    row = boot.model_dump(include=set(BOOT_COLUMNS))
    return row | {
        "attempt": attempt,
        "reason": _storable(boot.reason),
        "kernel": boot.kernel and _storable(boot.kernel),
    }


def described_rows(boot_id: int, ids: Sequence[int]) -> list[dict[str, Any]]:
    return [{"boot": boot_id, "benchmark": number, "ordinal": ordinal} for ordinal, number in enumerate(ids)]


def sample_rows(boot_id: int, boot: Boot, ids: Mapping[str, int]) -> list[dict[str, Any]]:
    return [
        {
            "boot": boot_id,
            "benchmark": ids[sample.benchmark],
            "iteration": sample.iteration,
            "elapsed": sample.elapsed,
            "work": sample.work,
            "value": sample.value,
        }
        for sample in boot.samples
    ]


def outcome_rows(boot_id: int, outcomes: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    return [
        {"boot": boot_id, "kind": kind, "benchmark": benchmark, "why": why}
        for kind, of_kind in outcomes.items()
        for benchmark, why in of_kind.items()
    ]


def sample_of(store: StoreUrl, row: Row[Any]) -> Sample:
    """Return the sample of a row. Raise RecordCorrupt."""
    try:
        return Sample(benchmark=row.name, iteration=row.iteration, elapsed=row.elapsed, work=row.work, value=row.value)
    except ValidationError as error:  # not with `read`: a run has a million
        raise _corrupt(store, f"boot {row.boot}, a sample of {row.name}", error) from None


def require_sound(connection: Connection, store: StoreUrl, run: RunRecord) -> None:
    """Raise RecordCorrupt unless the parts of a run fit together, as all readers of runs rely on."""
    if why := _unsound(run) or _misplaced_reason(connection, run):
        raise RecordCorrupt(where=store.where, record=f"run {run.id}", why=why)


def _unsound(run: RunRecord) -> str | None:
    names = [variant.name for variant in run.variants]
    if len(set(names)) < len(names) or run.baseline not in names:
        return "its variants are not distinct, or its baseline is not one of them"
    if run.stopped_at is not None and run.stopped_at > run.blocks:
        return f"it was stopped after {run.stopped_at:,} of {run.blocks:,} blocks"
    if any(len(variant.images) not in (0, run.layouts or 1) for variant in run.variants):
        return "a variant does not have one image for each layout"
    try:
        is_object = isinstance(plain_json.parse(run.experiment), dict)
    except ValueError as error:
        return f"its experiment is not plain JSON: {error}"
    return None if is_object else "its experiment is not a JSON object"


def _misplaced_reason(connection: Connection, run: RunRecord) -> str | None:
    """Return why the places are wrong: a run has a place for each variant in each block, and no other, so its size is
    that of its record.
    """
    cell, variant = schema.cell, schema.variant
    wanted = run.blocks * len(run.variants)
    right = (
        select(cell.c.variant, cell.c.block)
        .join_from(cell, variant, (variant.c.run == cell.c.run) & (variant.c.name == cell.c.variant))
        .where(cell.c.run == run.id, cell.c.block >= 0, cell.c.block < run.blocks)
        .where(cell.c.layout_index >= 0, cell.c.layout_index < (run.layouts or 1))
        .distinct()
        .subquery()
    )
    there = connection.execute(select(func.count()).select_from(right)).scalar_one()
    every = connection.execute(select(func.count()).where(cell.c.run == run.id)).scalar_one()
    if there == every == wanted:
        return None
    return f"{run.blocks:,} blocks of {len(run.variants):,} variants have {there:,} places, and {every - there:,} more"


def boot_of(row: Row[Any], samples: Sequence[Sample], outcomes: Mapping[str, Mapping[str, str]]) -> Boot:
    return Boot(
        **{name: row._mapping[name] for name in BOOT_COLUMNS},
        samples=tuple(samples),
        **{kind: outcomes[kind] for kind in OUTCOMES},
    )


def boot_record(boot: Boot, row: Row[Any]) -> BootRecord:
    """Return the boot in the place of a run that the row names."""
    place = BootPlace(**{name: row._mapping[name] for name in PLACE_COLUMNS})
    fields = {name: getattr(place, name) for name in PLACE_COLUMNS}
    return BootRecord.model_construct(**fields, **{name: getattr(boot, name) for name in Boot.model_fields})


def _storable(words: str) -> str:
    """Return a guest's text without the one character that PostgreSQL can't hold."""
    return words.replace("\0", "\N{REPLACEMENT CHARACTER}")
