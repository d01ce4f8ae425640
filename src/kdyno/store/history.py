"""Facts from earlier runs: which is the newest, when they began and where they stopped, how long their boots took."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Json
from sqlalchemy import Connection, func, select

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import LaneName
from kdyno.base.machine_facts import recorded_pmu_events
from kdyno.store import rows, schema
from kdyno.store.records import BlockCount, Seconds
from kdyno.store.url import StoreUrl


class _Begun(Frozen):
    """The columns of a run that are needed here."""

    id: str = ""
    stopped_at: BlockCount | None = None


class _Workload(BaseModel):
    type: str = "lmbench"


class _Experiment(BaseModel):
    workload: _Workload = _Workload()


class _Timed(Frozen):
    """The times of boots on a machine."""

    id: str
    machine: dict[str, Any]
    experiment: Json[_Experiment] | None = None
    seconds: tuple[Seconds, ...] = ()


def newest(connection: Connection, store: StoreUrl) -> str | None:
    """Return the id of the newest run."""
    run = schema.run.c
    run_id = connection.execute(select(run.id).order_by(run.created.desc(), run.id).limit(1)).scalar()
    with rows.read(store, "the newest run"):
        return None if run_id is None else _Begun(id=run_id).id


def stopped_at(connection: Connection, store: StoreUrl, run_id: str) -> int | None:
    """Return after how many blocks the group-sequential rule ended a run; None if it didn't, or there is no such
    run.
    """
    query = select(schema.run.c.stopped_at).where(schema.run.c.id == run_id)
    with rows.read(store, f"run {run_id}"):
        return _Begun(stopped_at=connection.execute(query).scalar()).stopped_at


def sharing(connection: Connection, run_id: str) -> list[str]:
    """Return the ids of the other runs that share boots of several of its variants with this one."""
    mine, other = schema.cell.alias("mine"), schema.cell.alias("other")
    query = (
        select(other.c.run)
        .join(mine, (mine.c.key == other.c.key) & (mine.c.run == run_id))
        .where(other.c.run != run_id)
        .group_by(other.c.run)
        .having(func.count(mine.c.key.distinct()) > func.count(mine.c.block.distinct()))
    )
    return list(connection.execute(query).scalars())


def boot_seconds(
    connection: Connection, store: StoreUrl, lane: LaneName, events: str | None, workload: str, limit: int
) -> tuple[str, list[float]] | None:
    """Return the newest run in this lane, with these events of the PMU, this type of workload and `ok` boots: its id,
    and the seconds of so many of its last boots.
    """
    run, cell, boot = schema.run.c, schema.cell.c, schema.boot.c
    query = select(run.id, run.machine, run.experiment).where(run.lane == lane).order_by(run.created.desc())
    for row in connection.execute(query):
        with rows.read(store, f"run {row.id}"):
            timed = _Timed(id=row.id, machine=row.machine, experiment=row.experiment)
        if recorded_pmu_events(timed.machine) != events:
            continue
        if timed.experiment and timed.experiment.workload.type != workload:
            continue
        of_run = (
            select(boot.seconds)
            .join_from(schema.cell, schema.boot, cell.key == boot.key)
            .where(cell.run == row.id, boot.status == "ok")
            .order_by(cell.position.desc())
            .limit(limit)
        )
        with rows.read(store, f"a boot of run {row.id}"):
            seconds = _Timed(id=row.id, machine={}, seconds=connection.execute(of_run).scalars().all()).seconds
        if seconds:
            return timed.id, list(seconds)
    return None


def count_records(connection: Connection) -> tuple[int, int]:
    """Return the numbers of runs and of boots."""
    runs, boots = (connection.execute(select(func.count()).select_from(table)) for table in (schema.run, schema.boot))
    return int(runs.scalar_one()), int(boots.scalar_one())
