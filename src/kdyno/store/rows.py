"""Between records and rows: what is written for a run and a boot, and what is made of what was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from kdyno.measurement import Benchmark, Sample
from kdyno.store import schema
from kdyno.store.errors import BootInconsistent
from kdyno.store.records import BootRecord, RunRecord

BOOT_COLUMNS = tuple(name for name in BootRecord.model_fields if name in schema.boot.c)
OUTCOMES = ("unsupported", "broken")


def lock_run(connection: Connection, run_id: str) -> bool:
    """Return whether the run is on record; until the transaction ends, no other one adds boots to it.

    SQLite has one writer at a time anyway, and knows no FOR UPDATE.
    """
    query = select(schema.run.c.id).where(schema.run.c.id == run_id).with_for_update()
    return connection.execute(query).scalar() is not None


def has_variant(connection: Connection, run_id: str, name: str) -> bool:
    variant = schema.variant.c
    return (
        connection.execute(select(variant.name).where(variant.run == run_id, variant.name == name)).first() is not None
    )


def run_row(run: RunRecord) -> dict[str, Any]:
    row = run.model_dump(exclude={"variants"})
    return row | run.model_dump(mode="json", include={"machine", "host", "notices"})


def variant_rows(run: RunRecord) -> list[dict[str, Any]]:
    return [
        {"run": run.id, "ordinal": ordinal, **variant.model_dump(mode="json")}
        for ordinal, variant in enumerate(run.variants)
    ]


def check(boot: BootRecord, benchmarks: Sequence[Benchmark]) -> None:
    """Raise BootInconsistent if a sample has no described benchmark, or is there twice."""
    unknown = {sample.benchmark for sample in boot.samples} - {benchmark.name for benchmark in benchmarks}
    if unknown:
        raise _inconsistent(boot, f"no benchmark is called {min(unknown)!r}")
    for (name, iteration), count in Counter((s.benchmark, s.iteration) for s in boot.samples).most_common(1):
        if count > 1:
            raise _inconsistent(boot, f"iteration {iteration} of {name!r} is there {count} times")


def recorded(connection: Connection, run_id: str, boot: BootRecord) -> bool:
    """Return whether this attempt of this variant in this block is on record."""
    column = schema.boot.c
    query = select(column.id).where(
        column.run == run_id,
        column.variant == boot.variant,
        column.block == boot.block,
        column.attempt == boot.attempt,
    )
    return connection.execute(query).first() is not None


def benchmark_ids(
    connection: Connection, run_id: str, boot: BootRecord, benchmarks: Sequence[Benchmark]
) -> dict[str, int]:
    """Return the keys of all benchmarks of the run by name; those that are new to it are added.

    Raises BootInconsistent if an earlier boot described one of them otherwise.
    """
    table = schema.benchmark
    of_run = select(table).where(table.c.run == run_id)
    known = {row.name: row for row in connection.execute(of_run)}
    for benchmark in benchmarks:
        row = known.get(benchmark.name)
        if row and (row.unit, row.direction, row.test) != (benchmark.unit, benchmark.direction, benchmark.test):
            raise _inconsistent(boot, f"earlier boots described the benchmark {benchmark.name!r} otherwise")
    new = [{"run": run_id, **each.model_dump()} for each in benchmarks if each.name not in known]
    if new:
        connection.execute(table.insert(), new)
    return {row.name: row.id for row in connection.execute(of_run)}


def boot_row(run_id: str, boot: BootRecord) -> dict[str, Any]:
    row = boot.model_dump(include=set(BOOT_COLUMNS))
    return row | {"run": run_id, "reason": _storable(boot.reason), "kernel": boot.kernel and _storable(boot.kernel)}


def sample_rows(key: int, boot: BootRecord, benchmark_ids: Mapping[str, int]) -> list[dict[str, Any]]:
    return [
        {
            "boot": key,
            "benchmark": benchmark_ids[sample.benchmark],
            "iteration": sample.iteration,
            "elapsed": sample.elapsed,
            "work": sample.work,
        }
        for sample in boot.samples
    ]


def outcome_rows(key: int, boot: BootRecord) -> list[dict[str, Any]]:
    return [
        {"boot": key, "kind": kind, "benchmark": _storable(benchmark), "why": _storable(why)}
        for kind in OUTCOMES
        for benchmark, why in getattr(boot, kind).items()
    ]


def boot_record(
    row: Row[Any], samples: Sequence[Sample], outcomes: Mapping[tuple[int, str], Mapping[str, str]]
) -> BootRecord:
    return BootRecord(
        **{name: row._mapping[name] for name in BOOT_COLUMNS},
        samples=tuple(samples),
        **{kind: dict(outcomes.get((row.id, kind), {})) for kind in OUTCOMES},
    )


def _inconsistent(boot: BootRecord, why: str) -> BootInconsistent:
    return BootInconsistent(variant=boot.variant, block=boot.block, why=why)


def _storable(text: str) -> str:
    """What a guest said, without the one character that PostgreSQL can't hold."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
