"""The list of runs. It imports little: `kdyno runs` takes as long as its imports."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, case, func, select

from kdyno.lanes import Lane
from kdyno.store import database, schema
from kdyno.store.errors import errors_are_said
from kdyno.store.progress import is_given_up


@dataclass(frozen=True)
class RunSummary:
    """One line of `kdyno runs`."""

    id: str
    name: str
    created: datetime
    """In UTC."""
    lane: Lane
    done: int
    """Boots that are `ok` or `failed`."""
    failed: int
    planned: int
    status: Literal["complete", "unfinished"]


def list_runs(url: str) -> list[RunSummary]:
    """All runs of the store with this URL, the newest first. Raises the errors of kdyno.store.errors."""
    parsed = database.parse(url)
    engine = database.connect(parsed)
    try:
        with errors_are_said(database.shown(parsed)), engine.begin() as connection:
            return summaries(connection)
    finally:
        engine.dispose()


def summaries(connection: Connection) -> list[RunSummary]:
    """One for each run, the newest first."""
    run, variant = schema.run.c, schema.variant.c
    variants: dict[str, list[str]] = defaultdict(list)
    for row in connection.execute(select(variant.run, variant.name)):
        variants[row.run].append(row.name)
    counts = _counts(connection)
    found = []
    for row in connection.execute(select(schema.run).order_by(run.created.desc(), run.id)):
        ends = {name: counts.get((row.id, name), (0, 0)) for name in variants[row.id]}
        blocks = row.stopped_at or row.blocks
        complete = all(done >= blocks or is_given_up(done, failed) for done, failed in ends.values())
        found.append(
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
    return found


def _counts(connection: Connection) -> dict[tuple[str, str], tuple[int, int]]:
    """By run and variant: how many blocks are done, and how many of them by a boot that failed."""
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
