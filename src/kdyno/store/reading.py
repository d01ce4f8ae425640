"""Reading runs, boots and benchmarks from a store as records, each checked as it is read.

A store may be somebody else's: RecordCorrupt names the record and what is wrong with it. All functions work within one
transaction.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from pydantic import AwareDatetime
from sqlalchemy import ColumnElement, Connection, Row, Select, func, select

from kdyno.base.frozen import Frozen
from kdyno.base.measurement import Benchmark, BootStatus, Sample
from kdyno.store import digests, exchange, rows, schema
from kdyno.store.checks import keys_of
from kdyno.store.records import Boot, BootRecord, Count, Finite, RunRecord, Seconds, VariantRecord, is_disturbed
from kdyno.store.url import StoreUrl
from kdyno.store.whole import KeptSelfTest, KeyedPlace, WholeBoot, WholeRun


class End(Frozen):
    """How a boot ended, without its measurements."""

    status: BootStatus
    reason: str
    seconds: Seconds
    started: AwareDatetime


class PlacedEnd(Frozen):
    """How a boot of a run ended, without its measurements."""

    variant: str
    block: Count
    status: BootStatus
    reason: str
    conditions: dict[str, Finite]

    @property
    def was_run_again(self) -> bool:
        """Return whether it came to its end, but was run again because other work on the host disturbed it."""
        return is_disturbed(self.status, self.conditions)


class _Started(Frozen):
    key: str
    started: AwareDatetime | None


def run_of(connection: Connection, store: StoreUrl, row: Row[Any]) -> RunRecord:
    """Return the run of a row, with its variants, checked against its cells."""
    variant = schema.variant
    variants = connection.execute(select(variant).where(variant.c.run == row.id).order_by(variant.c.ordinal))
    fields = {name: value for name, value in row._mapping.items() if name in RunRecord.model_fields}
    with rows.read(store, f"run {row.id}"):
        run = RunRecord(
            **fields,
            variants=tuple(VariantRecord(name=v.name, recipe=v.recipe, images=v.images) for v in variants),
        )
    rows.require_sound(connection, store, run)
    rows.require_digest(store, f"run {row.id}", row, rows.digest_of_run(connection, row._asdict()))
    return run


def all_runs(connection: Connection, store: StoreUrl) -> list[RunRecord]:
    """Return all runs, the oldest first."""
    every = connection.execute(select(schema.run).order_by(schema.run.c.created, schema.run.c.id)).all()
    return [run_of(connection, store, row) for row in every]


def keys_of_run(run_id: str) -> Select[tuple[str]]:
    """Return a query for the keys of a run's boots."""
    return select(schema.cell.c.key).where(schema.cell.c.run == run_id)


def benchmarks(connection: Connection, store: StoreUrl, chosen: ColumnElement[bool]) -> list[Benchmark]:
    """Return the benchmarks that the chosen boots described, in their order; each name once, with its first meaning."""
    benchmark, described = schema.benchmark, schema.described
    query = (
        select(benchmark)
        .join_from(benchmark, described, benchmark.c.id == described.c.benchmark)
        .join(schema.boot, schema.boot.c.id == described.c.boot)
        .where(chosen)
        .group_by(*benchmark.c)
        .order_by(func.min(described.c.ordinal), benchmark.c.id)
    )
    by_name: dict[str, Benchmark] = {}
    for row in connection.execute(query):
        with rows.read(store, f"benchmark {row.id}"):
            by_name.setdefault(row.name, rows.benchmark_of(row))
    return list(by_name.values())


def boots(connection: Connection, store: StoreUrl, chosen: ColumnElement[bool]) -> dict[int, Boot]:
    """Return the chosen boots by their number, in the order of their start."""
    boot, sample, benchmark, outcome = schema.boot, schema.sample, schema.benchmark, schema.outcome
    described = schema.described
    names: dict[int, list[str]] = defaultdict(list)
    for number, name in connection.execute(
        select(described.c.boot, benchmark.c.name)
        .join_from(described, boot, described.c.boot == boot.c.id)
        .join(benchmark, described.c.benchmark == benchmark.c.id)
        .where(chosen)
        .order_by(described.c.boot, described.c.ordinal)
    ):
        names[number].append(name)
    samples: dict[int, list[Sample]] = defaultdict(list)
    for row in connection.execute(
        select(sample, benchmark.c.name)
        .join_from(sample, boot, sample.c.boot == boot.c.id)
        .join(benchmark, sample.c.benchmark == benchmark.c.id)
        .join(described, (described.c.boot == boot.c.id) & (described.c.benchmark == benchmark.c.id))
        .where(chosen)
        .order_by(sample.c.boot, described.c.ordinal, sample.c.iteration)
    ):
        samples[row.boot].append(rows.sample_of(store, row))
    outcomes: dict[int, dict[str, dict[str, str]]] = defaultdict(lambda: {kind: {} for kind in rows.OUTCOMES})
    for row in connection.execute(select(outcome).join_from(outcome, boot, outcome.c.boot == boot.c.id).where(chosen)):
        outcomes[row.boot].setdefault(row.kind, {})[row.benchmark] = row.why
    by_number: dict[int, Boot] = {}
    for row in connection.execute(select(boot).where(chosen).order_by(boot.c.started, boot.c.id)):
        with rows.read(store, f"boot {row.key}"):
            by_number[row.id] = rows.boot_of(row, samples[row.id], outcomes[row.id])
        digest = digests.digest_boot(row._asdict(), names[row.id], samples[row.id], outcomes[row.id])
        rows.require_digest(store, f"boot {row.key}", row, digest)
    return by_number


def boots_in_place(connection: Connection, store: StoreUrl, run_id: str) -> list[BootRecord]:
    """Return all boots of a run, lost ones too, by position and attempt; samples by benchmark and iteration."""
    boot, cell = schema.boot.c, schema.cell
    by_number = boots(connection, store, boot.key.in_(keys_of_run(run_id)))
    query = (
        select(cell, boot.id)
        .join_from(cell, schema.boot, cell.c.key == boot.key)
        .where(cell.c.run == run_id)
        .order_by(cell.c.position, boot.attempt)
    )
    with rows.read(store, f"run {run_id}, a place"):
        return [rows.boot_record(by_number[row.id], row) for row in connection.execute(query)]


def ends_in_place(connection: Connection, store: StoreUrl, run_id: str) -> list[PlacedEnd]:
    """Return how all boots of a run ended, lost ones too, by position and attempt."""
    boot, cell = schema.boot.c, schema.cell.c
    query = (
        select(cell.variant, cell.block, boot.status, boot.reason, boot.conditions)
        .join_from(schema.cell, schema.boot, cell.key == boot.key)
        .where(cell.run == run_id)
        .order_by(cell.position, boot.attempt)
    )
    with rows.read(store, f"run {run_id}, a place"):
        return [PlacedEnd(**row._mapping) for row in connection.execute(query)]


def ends(connection: Connection, store: StoreUrl, keys: Iterable[str]) -> dict[str, End]:
    """Return how the boots with these keys ended that are on record as `ok` or `failed`, in the order of their
    start.
    """
    boot = schema.boot.c
    by_key: dict[str, End] = {}
    for some in exchange.batches(set(keys)):
        query = select(boot.key, boot.status, boot.reason, boot.seconds, boot.started)
        for row in connection.execute(query.where(boot.key.in_(some), boot.status != "lost")):
            with rows.read(store, f"boot {row.key}"):
                by_key[row.key] = End(status=row.status, reason=row.reason, seconds=row.seconds, started=row.started)
    return dict(sorted(by_key.items(), key=lambda key_and_end: key_and_end[1].started))


def count_reruns(connection: Connection, store: StoreUrl, keys: Iterable[str]) -> Counter[str]:
    """Return how often the boots with these keys were run again because other work on the host disturbed them."""
    boot = schema.boot.c
    reruns: Counter[str] = Counter()
    for some in exchange.batches(set(keys)):
        lost = boots(connection, store, boot.key.in_(some) & (boot.status == "lost")).values()
        reruns.update(one.key for one in lost if one.was_run_again)
    return reruns


def count_attempts(connection: Connection, keys: Iterable[str]) -> Counter[str]:
    """Return how many boots with these keys are on record, lost ones too."""
    key = schema.boot.c.key
    attempts: Counter[str] = Counter()
    for some in exchange.batches(set(keys)):
        rows = connection.execute(select(key, func.count()).where(key.in_(some)).group_by(key))
        attempts.update({row[0]: row[1] for row in rows})
    return attempts


def last_starts(connection: Connection, store: StoreUrl) -> dict[str, datetime]:
    """Return the keys of all boots, and when each of them was started for the last time."""
    boot = schema.boot.c
    by_key = {}
    for key, started in connection.execute(select(boot.key, func.max(boot.started)).group_by(boot.key)):
        with rows.read(store, f"boot {key}"):
            last = _Started(key=key, started=started if isinstance(started, datetime) else None)
        by_key[last.key] = last.started or datetime.now(UTC)
    return by_key


def whole_run(connection: Connection, store: StoreUrl, run: RunRecord) -> WholeRun:
    """Return the whole record of a run, check boots of its kernels too; boots in the order in which they came."""
    cell, boot = schema.cell.c, schema.boot.c
    with rows.read(store, f"run {run.id}, a place"):
        cells = tuple(
            KeyedPlace(**{name: row._mapping[name] for name in KeyedPlace.model_fields})
            for row in connection.execute(select(schema.cell).where(cell.run == run.id).order_by(cell.position))
        )
    by_number: dict[int, WholeBoot] = {}
    for some in exchange.batches({*(place.key for place in cells), *keys_of(run)}):
        for number, one in boots(connection, store, boot.key.in_(some)).items():
            described = benchmarks(connection, store, boot.id == number)
            by_number[number] = WholeBoot(boot=one, benchmarks=described)
    kept = next(iter(selftests(connection, store, schema.selftest.c.run == run.id)), None)
    return WholeRun(
        run=run,
        cells=cells,
        selftest=kept and kept[1],
        boots=tuple(by_number[number] for number in sorted(by_number)),
    )


def selftests(
    connection: Connection, store: StoreUrl, chosen: ColumnElement[bool] | None = None
) -> list[tuple[str, KeptSelfTest]]:
    """Return the results of the chosen self-tests, or of all, the newest first, each with its run."""
    table = schema.selftest
    query = select(table).order_by(table.c.created.desc())
    found = []
    for row in connection.execute(query if chosen is None else query.where(chosen)):
        record = f"the self-test of run {row.run}"
        with rows.read(store, record):
            found.append((row.run, KeptSelfTest(created=row.created, found=row.found)))
        rows.require_digest(store, record, row, digests.digest_selftest(row._asdict()))
    return found
