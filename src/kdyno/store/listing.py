"""The list of runs. It imports little: `kdyno runs` takes as long as its imports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, case, func, select

from kdyno.base.lanes import LANES, LaneName
from kdyno.store import database, schema
from kdyno.store.errors import RecordCorrupt, translate_driver_errors
from kdyno.store.progress import is_given_up
from kdyno.store.url import Access, StoreUrl


@dataclass(frozen=True)
class RunSummary:
    """One line of `kdyno runs`."""

    id: str
    name: str
    created: datetime
    """In UTC."""
    lane: LaneName
    done: int
    """Boots that are `ok` or `failed`."""
    failed: int
    planned: int
    status: Literal["complete", "unfinished"]


RunSummaries = tuple[RunSummary, ...]
"""The document that `kdyno runs --json` prints."""


def list_runs(store: StoreUrl, access: Access) -> list[RunSummary]:
    """Return all runs of a store, the newest first. Raise the errors of kdyno.store.errors."""
    engine = database.connect(store, access)
    try:
        with translate_driver_errors(store), engine.begin() as connection:
            return summaries(connection, store)
    finally:
        engine.dispose()


def summaries(connection: Connection, store: StoreUrl) -> list[RunSummary]:
    """Return a summary of each run, the newest first. Raise RecordCorrupt."""
    run, variant = schema.run.c, schema.variant.c
    variants: dict[str, list[str]] = defaultdict(list)
    for row in connection.execute(select(variant.run, variant.name)):
        variants[row.run].append(row.name)
    counts = _counts(connection)
    listed = []
    for row in connection.execute(select(schema.run).order_by(run.created.desc(), run.id)):
        if wrong := next(_find_faults(row), None):
            raise RecordCorrupt(where=store.where, record=f"run {row.id}", why=wrong)
        ends = {name: counts.get((row.id, name), (0, 0)) for name in variants[row.id]}
        blocks = row.stopped_at or row.blocks
        complete = all(done >= blocks or is_given_up(done, failed) for done, failed in ends.values())
        listed.append(
            RunSummary(
                id=row.id,
                name=row.name,
                created=row.created,
                lane=row.lane,
                done=sum(done for done, _ in ends.values()),
                failed=sum(failed for _, failed in ends.values()),
                planned=blocks * len(ends),
                status="complete" if complete else "unfinished",
            )
        )
    return listed


def _find_faults(row: Any) -> Iterator[str]:
    """Yield what is wrong with a row's shown values; RunRecord checks more, but takes long to import."""
    for name, kind in (("id", str), ("name", str), ("created", datetime), ("blocks", int)):
        if not isinstance(getattr(row, name), kind):
            yield f"{name} is not {kind.__name__}"
    if row.lane not in LANES:
        yield "lane is not valid"
    if not isinstance(row.stopped_at, int | None):
        yield "stopped_at is not int"


def _counts(connection: Connection) -> dict[tuple[str, str], tuple[int, int]]:
    """Return for each run and variant how many blocks are done, and how many of them by a boot that failed."""
    boot, cell, run = schema.boot.c, schema.cell.c, schema.run.c
    failed = func.sum(case((boot.status == "failed", 1), else_=0))
    query = (
        select(cell.run, cell.variant, func.count().label("done"), failed.label("failed"))
        .join_from(schema.cell, schema.boot, cell.key == boot.key)
        .join(schema.run, run.id == cell.run)
        .where(boot.status != "lost", cell.block < func.coalesce(run.stopped_at, run.blocks))
        .group_by(cell.run, cell.variant)
    )
    return {(row.run, row.variant): (row.done, row.failed) for row in connection.execute(query)}
