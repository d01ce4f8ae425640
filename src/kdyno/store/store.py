"""The store: what was run, booted and measured. No boot and no sample in it is ever changed or overwritten."""

from __future__ import annotations

import difflib
import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from pydantic import AwareDatetime, BaseModel, Json
from sqlalchemy import ColumnElement, Connection, func, select

from kdyno.frozen import Frozen
from kdyno.lanes import Lane
from kdyno.measurement import Benchmark, BootStatus, Sample
from kdyno.store import database, exchange, rows, schema
from kdyno.store.checks import keys_of
from kdyno.store.errors import (
    BootDiffers,
    RecordCorrupt,
    RecordRefused,
    RunAmbiguous,
    RunThere,
    RunUnknown,
    errors_are_said,
)
from kdyno.store.exchange import Removed
from kdyno.store.listing import RunSummary, summaries
from kdyno.store.records import BlockCount, Boot, BootRecord, Place, RunRecord, Seconds, VariantRecord
from kdyno.store.url import StoreUrl, parse
from kdyno.store.whole import KeptSelfTest, KeyedPlace, WholeBoot, WholeRun


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
                rows.insert_run(connection, run, cells)
        except RecordRefused:
            with self._reading() as connection:
                if not rows.is_on_record(connection, run.id):  # otherwise another process began it in between
                    raise

    def keep_selftest(self, run_id: str, created: datetime, result: Mapping[str, Any]) -> None:
        """Record what the A/A experiments of a run came to, instead of what was recorded of them before."""
        table = schema.selftest
        with self._writing() as connection:
            connection.execute(table.delete().where(table.c.run == run_id))
            connection.execute(table.insert(), {"run": run_id, "created": created, "found": dict(result)})

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
            rows.insert_boot(connection, boot, attempt, benchmarks)
        return True

    def ends(self, keys: Iterable[str]) -> dict[str, End]:
        """How the boots with these keys ended that are on record as `ok` or `failed`, in the order of their start."""
        boot = schema.boot.c
        ends: dict[str, End] = {}
        with self._reading() as connection:
            for some in exchange.batches(set(keys)):
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
            return self._run(connection, self._row_of(connection, prefix.lower()))

    def whole_runs(self) -> list[RunRecord]:
        """All runs with all that is on record of them but their boots, the oldest first."""
        with self._reading() as connection:
            return self._whole_runs(connection)

    def keys(self) -> dict[str, datetime]:
        """The keys of all boots, and when each of them was started for the last time."""
        boot = schema.boot.c
        with self._reading() as connection:
            return self._keys(connection, select(boot.key, func.max(boot.started)).group_by(boot.key))

    def keys_of_runs(self) -> set[str]:
        """The keys of the boots that runs have, and of the check boots of their kernels."""
        with self._reading() as connection:
            checks = (keys_of(run) for run in self._whole_runs(connection))
            return set(connection.execute(select(schema.cell.c.key)).scalars()).union(*checks)

    def artefacts(self, but: Collection[str] = ()) -> set[str]:
        """SHA-256 of the artefacts of all boots but those with these keys."""
        with self._reading() as connection:
            return exchange.artefacts(connection, but)

    def remove_run(self, run_id: str) -> Removed:
        """Take a run off the record, with the boots that no other run has. Raises RunUnknown."""
        with self._writing() as connection:
            run = self._run(connection, self._row_of(connection, run_id))
            others = [other for other in self._whole_runs(connection) if other.id != run.id]
            kept = set[str]().union(*map(keys_of, others))
            return exchange.remove_run(connection, run.id, keys_of(run), kept)

    def remove_boots(self, keys: Iterable[str]) -> Removed:
        """Take boots off the record that no run has; those that one has by now stay."""
        with self._writing() as connection:
            kept = set[str]().union(*map(keys_of, self._whole_runs(connection)))
            return exchange.remove_boots(connection, set(keys) - kept)

    def whole_run(self, run_id: str) -> WholeRun:
        """All that is on record of a run, check boots of its kernels too; boots in the order in which they came."""
        with self._reading() as connection:
            run = self._run(connection, self._row_of(connection, run_id))
            cell, boot = schema.cell.c, schema.boot.c
            with self.record(f"run {run.id}, a place"):
                cells = tuple(
                    KeyedPlace(**{name: row._mapping[name] for name in KeyedPlace.model_fields})
                    for row in connection.execute(select(schema.cell).where(cell.run == run.id).order_by(cell.position))
                )
            boots: dict[int, WholeBoot] = {}
            for some in exchange.batches({*(place.key for place in cells), *keys_of(run)}):
                for number, one in self._boots(connection, boot.key.in_(some)).items():
                    boots[number] = WholeBoot(boot=one, benchmarks=self._benchmarks(connection, boot.id == number))
            kept = connection.execute(select(schema.selftest).where(schema.selftest.c.run == run.id)).one_or_none()
            with self.record(f"the self-test of run {run.id}"):
                selftest = KeptSelfTest(created=kept.created, found=kept.found) if kept else None
            return WholeRun(
                run=run, cells=cells, selftest=selftest, boots=tuple(boots[number] for number in sorted(boots))
            )

    def take_in(self, whole: WholeRun) -> int:
        """Put a run on record as `whole_run` gave it, all or nothing; returns how many boots were new.

        Boots that are on record, as other runs may share them, stay as they are. Raises RunThere, BootDiffers,
        BootInconsistent and RecordCorrupt.
        """
        for one in whole.boots:
            rows.check(one.boot, one.benchmarks)
        with self._writing() as connection:
            if rows.is_on_record(connection, whole.run.id):
                raise RunThere(run=whole.run.id, where=self.where)
            rows.insert_run(connection, whole.run, whole.in_cells)
            if whole.selftest:
                kept = {"run": whole.run.id, **whole.selftest.model_dump()}
                connection.execute(schema.selftest.insert(), kept)
            added = 0
            for key, attempts in whole.by_key.items():
                if rows.next_attempt(connection, key) is None:
                    self._require_alike(connection, key, attempts[-1])
                    continue
                for one in attempts:
                    attempt = rows.next_attempt(connection, key)
                    assert attempt is not None, "only the last one of a key isn't lost"
                    rows.insert_boot(connection, one.boot, attempt, one.benchmarks)
                    added += 1
            if self._run(connection, self._row_of(connection, whole.run.id)) != whole.run:
                raise RecordCorrupt(
                    where=self.where, record=f"run {whole.run.id}", why="it isn't read as it was written"
                )
            return added

    def _require_alike(self, connection: Connection, key: str, theirs: WholeBoot) -> None:
        """Raise BootDiffers unless the boot on record says what the other one of this key says."""
        ours = [boot for boot in self._boots(connection, schema.boot.c.key == key).values() if boot.status != "lost"]
        fields = ("seed", "status", "samples", "unsupported", "broken")
        if theirs.boot.status != "lost" and any(
            getattr(ours[0], name) != getattr(theirs.boot, name) for name in fields
        ):
            raise BootDiffers(key=key[:12], where=self.where)

    def _whole_runs(self, connection: Connection) -> list[RunRecord]:
        every = connection.execute(select(schema.run).order_by(schema.run.c.created, schema.run.c.id)).all()
        return [self._run(connection, row) for row in every]

    def _keys(self, connection: Connection, query: Any) -> dict[str, datetime]:
        keys = {}
        for key, started in connection.execute(query):
            with self.record(f"boot {key}"):
                begun = _Begun(id=key, created=started if isinstance(started, datetime) else None)
            keys[begun.id] = begun.created or datetime.now(UTC)
        return keys

    def _run(self, connection: Connection, row: Any) -> RunRecord:
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
