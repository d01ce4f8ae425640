"""The store: what was run, booted and measured. No boot and no sample in it is ever changed or overwritten."""

from __future__ import annotations

import difflib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from pydantic import AwareDatetime, BaseModel, Json
from sqlalchemy import ColumnElement, Connection, func, select

from kdyno.frozen import Frozen
from kdyno.lanes import Lane
from kdyno.measurement import Benchmark, BootStatus, Sample
from kdyno.store import database, rows, schema
from kdyno.store.errors import RecordRefused, RunAmbiguous, RunUnknown, errors_are_said
from kdyno.store.listing import RunSummary, summaries
from kdyno.store.records import BlockCount, Boot, BootRecord, Place, RunRecord, Seconds, VariantRecord
from kdyno.store.url import StoreUrl, parse

KEYS_AT_ONCE = 500
"""In one query: databases have limits."""


class End(Frozen):
    """How a boot ended, without what it measured."""

    status: BootStatus
    reason: str
    seconds: Seconds
    started: AwareDatetime


class _Begun(Frozen):
    """What is asked of a run without the rest of it."""

    id: str = ""
    created: AwareDatetime | None = None
    stopped_at: BlockCount | None = None


class _Workload(BaseModel):
    type: str = "lmbench"


class _Experiment(BaseModel):
    workload: _Workload = _Workload()


class _Timed(Frozen):
    """How long boots on a machine took."""

    id: str
    machine: dict[str, Any]
    experiment: Json[_Experiment] | None = None
    seconds: tuple[Seconds, ...] = ()


class Store:
    """A store by URL: `sqlite:///FILE` or `postgresql://USER@HOST/DATABASE`. Safe for threads and several processes.

    Opening makes the tables if there are none. What is read may be somebody else's: it is checked, and RecordCorrupt
    names the record and what is wrong with it. Raises the errors of kdyno.store.url and .errors, and DiskFull.
    """

    def __init__(self, named: str | StoreUrl) -> None:
        self._url = parse(named) if isinstance(named, str) else named
        self._engine = database.connect(self._url)

    @property
    def where(self) -> str:
        """How messages name it."""
        return self._url.where

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._engine.dispose()

    def begin(self, run: RunRecord, cells: Iterable[tuple[Place, str]]) -> None:
        """Record a run and the keys of its boots; nothing happens if a run with this id is on record."""
        try:
            with self._writing() as connection:
                if rows.is_on_record(connection, run.id):
                    return
                connection.execute(schema.run.insert(), rows.run_row(run))
                connection.execute(schema.variant.insert(), rows.variant_rows(run))
                if places := rows.cell_rows(run.id, cells):
                    connection.execute(schema.cell.insert(), places)
        except RecordRefused:
            with self._reading() as connection:
                if not rows.is_on_record(connection, run.id):  # otherwise another process began it in between
                    raise

    def keep_selftest(self, run_id: str, created: datetime, found: Mapping[str, Any]) -> None:
        """Record what the A/A experiments of a run came to, instead of what was recorded of them before."""
        table = schema.selftest
        with self._writing() as connection:
            connection.execute(table.delete().where(table.c.run == run_id))
            connection.execute(table.insert(), {"run": run_id, "created": created, "found": dict(found)})

    def selftests(self) -> list[tuple[str, Any]]:
        """What all self-tests found, the newest first, each with its run. Whoever reads it says what it must be."""
        table = schema.selftest
        with self._reading() as connection:
            return [(row.run, row.found) for row in connection.execute(select(table).order_by(table.c.created.desc()))]

    def record(self, name: str) -> AbstractContextManager[None]:
        """In the body, what pydantic says against a record of this store is a RecordCorrupt that names it."""
        return rows.read(self._url, name)

    def stop(self, run_id: str, blocks: int) -> None:
        """Record that the group-sequential rule ended a run after so many blocks."""
        with self._writing() as connection:
            connection.execute(schema.run.update().where(schema.run.c.id == run_id).values(stopped_at=blocks))

    def stopped_at(self, run_id: str) -> int | None:
        """After how many blocks the group-sequential rule ended a run; None if it didn't, or there is no such run."""
        with self._reading() as connection:
            query = select(schema.run.c.stopped_at).where(schema.run.c.id == run_id)
            with self.record(f"run {run_id}"):
                return _Begun(stopped_at=connection.execute(query).scalar()).stopped_at

    def add_boot(self, boot: Boot, benchmarks: Sequence[Benchmark]) -> bool:
        """Record a boot with its samples, all or nothing; it is durable when this returns.

        The store counts attempts: `boot.attempt` isn't looked at. Returns False, and changes nothing, if a boot with
        this key is on record as `ok` or `failed`. `benchmarks` describes at least those that the samples name, in the
        agent's order. Raises BootInconsistent if it doesn't.
        """
        rows.check(boot, benchmarks)
        with self._writing() as connection:
            attempt = rows.next_attempt(connection, boot.key)
            if attempt is None:
                return False
            numbers = rows.benchmark_ids(connection, benchmarks) if benchmarks else []
            row = rows.boot_row(boot, attempt)
            boot_id = connection.execute(schema.boot.insert().returning(schema.boot.c.id), row).scalar_one()
            names = dict(zip((benchmark.name for benchmark in benchmarks), numbers, strict=True))
            for table, new in (
                (schema.described, rows.described_rows(boot_id, numbers)),
                (schema.sample, rows.sample_rows(boot_id, boot, names)),
                (schema.outcome, rows.outcome_rows(boot_id, boot)),
            ):
                if new:
                    connection.execute(table.insert(), new)
        return True

    def ends(self, keys: Iterable[str]) -> dict[str, End]:
        """How the boots with these keys ended that are on record as `ok` or `failed`, in the order of their start."""
        boot, wanted = schema.boot.c, list(dict.fromkeys(keys))
        ends: dict[str, End] = {}
        with self._reading() as connection:
            for start in range(0, len(wanted), KEYS_AT_ONCE):
                some = wanted[start : start + KEYS_AT_ONCE]
                query = select(boot.key, boot.status, boot.reason, boot.seconds, boot.started)
                for row in connection.execute(query.where(boot.key.in_(some), boot.status != "lost")):
                    with self.record(f"boot {row.key}"):
                        ends[row.key] = End(
                            status=row.status, reason=row.reason, seconds=row.seconds, started=row.started
                        )
        return dict(sorted(ends.items(), key=lambda key_and_end: key_and_end[1].started))

    def boot(self, key: str) -> tuple[Boot, list[Benchmark]] | None:
        """The boot with this key and what it described, if it is on record as `ok` or `failed`."""
        of_key = schema.boot.c.key == key
        with self._reading() as connection:
            boots = [boot for boot in self._boots(connection, of_key).values() if boot.status != "lost"]
            benchmarks = self._benchmarks(connection, of_key)
        return (boots[0], benchmarks) if boots else None

    def runs(self) -> list[RunSummary]:
        """All runs, the newest first."""
        with self._reading() as connection:
            return summaries(connection, self._url)

    def has_run(self, run_id: str) -> bool:
        with self._reading() as connection:
            return rows.is_on_record(connection, run_id)

    def boot_seconds(
        self, lane: Lane, events: str | None, workload: str, limit: int = 50
    ) -> tuple[str, list[float]] | None:
        """The newest run in this lane, with these events of the PMU, this type of workload and `ok` boots: its id, and
        what they took.
        """
        run, cell, boot = schema.run.c, schema.cell.c, schema.boot.c
        with self._reading() as connection:
            query = select(run.id, run.machine, run.experiment).where(run.lane == lane).order_by(run.created.desc())
            for row in connection.execute(query):
                with self.record(f"run {row.id}"):
                    timed = _Timed(id=row.id, machine=row.machine, experiment=row.experiment)
                if timed.machine.get("pmu_events") != events:
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
                with self.record(f"a boot of run {row.id}"):
                    seconds = _Timed(id=row.id, machine={}, seconds=connection.execute(of_run).scalars().all()).seconds
                if seconds:
                    return timed.id, list(seconds)
        return None

    def begun(self, run_id: str) -> list[datetime]:
        """When this run was begun, and each earlier one that shares boots of several of its variants with it."""
        run, mine, other = schema.run, schema.cell.alias("mine"), schema.cell.alias("other")
        with self._reading() as connection:
            created = select(run.c.created).where(run.c.id == run_id).scalar_subquery()
            query = (
                select(run.c.created)
                .join_from(run, other, other.c.run == run.c.id)
                .join(mine, (mine.c.key == other.c.key) & (mine.c.run == run_id))
                .where(run.c.created <= created)
                .group_by(run.c.id, run.c.created)
                .having(func.count(mine.c.key.distinct()) > func.count(mine.c.block.distinct()))
            )
            with self.record(f"run {run_id}"):
                runs = [_Begun(created=created) for created in connection.execute(query).scalars()]
            return [begun.created for begun in runs if begun.created]

    def newest(self) -> str | None:
        """The id of the newest run."""
        run = schema.run.c
        with self._reading() as connection:
            newest = connection.execute(select(run.id).order_by(run.created.desc(), run.id).limit(1)).scalar()
            with self.record("the newest run"):
                return None if newest is None else _Begun(id=newest).id

    def run(self, prefix: str) -> RunRecord:
        """The run whose id starts with `prefix`. Raises RunUnknown or RunAmbiguous, which name the nearest ones."""
        with self._reading() as connection:
            row = self._row_of(connection, prefix.lower())
            variant = schema.variant
            variants = connection.execute(select(variant).where(variant.c.run == row.id).order_by(variant.c.ordinal))
            with self.record(f"run {row.id}"):
                run = RunRecord(
                    **row._mapping,
                    variants=tuple(VariantRecord(name=v.name, recipe=v.recipe, images=v.images) for v in variants),
                )
            rows.require_sound(connection, self._url, run)
            return run

    def benchmarks(self, run_id: str) -> list[Benchmark]:
        """The benchmarks of a run, in the order in which its boots name them; each name once, as it was first meant."""
        with self._reading() as connection:
            return self._benchmarks(connection, schema.boot.c.key.in_(self._keys_of(run_id)))

    def boots(self, run_id: str) -> list[BootRecord]:
        """All boots of a run, lost ones too, by position and attempt; samples by benchmark and iteration."""
        boot, cell = schema.boot.c, schema.cell
        with self._reading() as connection:
            boots = self._boots(connection, boot.key.in_(self._keys_of(run_id)))
            query = (
                select(cell, boot.id)
                .join_from(cell, schema.boot, cell.c.key == boot.key)
                .where(cell.c.run == run_id)
                .order_by(cell.c.position, boot.attempt)
            )
            with self.record(f"run {run_id}, a place"):
                return [rows.in_place(boots[row.id], row) for row in connection.execute(query)]

    @staticmethod
    def _keys_of(run_id: str) -> Any:
        return select(schema.cell.c.key).where(schema.cell.c.run == run_id)

    def _benchmarks(self, connection: Connection, chosen: ColumnElement[bool]) -> list[Benchmark]:
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
            with self.record(f"benchmark {row.id}"):
                by_name.setdefault(row.name, rows.benchmark_of(row))
        return list(by_name.values())

    def _boots(self, connection: Connection, chosen: ColumnElement[bool]) -> dict[int, Boot]:
        """The boots by their number, in the order of their start."""
        boot, sample, benchmark, outcome = schema.boot, schema.sample, schema.benchmark, schema.outcome
        samples: dict[int, list[Sample]] = defaultdict(list)
        for row in connection.execute(
            select(sample, benchmark.c.name)
            .join_from(sample, boot, sample.c.boot == boot.c.id)
            .join(benchmark, sample.c.benchmark == benchmark.c.id)
            .join(
                schema.described,
                (schema.described.c.boot == boot.c.id) & (schema.described.c.benchmark == benchmark.c.id),
            )
            .where(chosen)
            .order_by(sample.c.boot, schema.described.c.ordinal, sample.c.iteration)
        ):
            samples[row.boot].append(rows.sample_of(self._url, row))
        outcomes: dict[tuple[int, str], dict[str, str]] = defaultdict(dict)
        for row in connection.execute(
            select(outcome).join_from(outcome, boot, outcome.c.boot == boot.c.id).where(chosen)
        ):
            outcomes[row.boot, row.kind][row.benchmark] = row.why
        boots: dict[int, Boot] = {}
        for row in connection.execute(select(boot).where(chosen).order_by(boot.c.started, boot.c.id)):
            with self.record(f"boot {row.key}"):
                boots[row.id] = rows.boot_of(row, samples[row.id], outcomes)
        return boots

    def _row_of(self, connection: Connection, prefix: str) -> Any:
        run = schema.run
        matches = connection.execute(
            select(run).where(run.c.id.startswith(prefix, autoescape=True)).order_by(run.c.created.desc())
        ).all()
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise RunAmbiguous(prefix=prefix, count=len(matches), nearest=_listed(matches))
        others = connection.execute(select(run.c.id, run.c.name).order_by(run.c.created.desc())).all()
        if not others:
            raise RunUnknown(prefix=prefix, where=self.where, nearest="the store has no runs yet")
        begins = [str(row.id)[: len(prefix)] for row in others]
        close = difflib.get_close_matches(prefix, begins, n=3, cutoff=0.5)
        nearest = [
            row for row, start in zip(others, begins, strict=True) if start in close or row.name == prefix
        ] or others
        raise RunUnknown(prefix=prefix, where=self.where, nearest=f"the nearest: {_listed(nearest)}")

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with errors_are_said(self._url), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with errors_are_said(self._url), database.writing(self._engine) as connection:
            yield connection


def _listed(runs: Iterable[Any]) -> str:
    return ", ".join(f"{str(row.id)[:12]} ({row.name})" for row in itertools.islice(runs, 5))
