"""The store: what was run, booted and measured. No boot and no sample in it is ever changed or overwritten."""

from __future__ import annotations

import difflib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self

from pydantic import AwareDatetime
from sqlalchemy import Connection, case, func, select
from sqlalchemy.exc import IntegrityError

from kdyno.frozen import Frozen
from kdyno.measurement import Benchmark, Lane, Sample
from kdyno.store import database, rows, schema
from kdyno.store.errors import BootInconsistent, RunAmbiguous, RunUnknown, errors_are_said
from kdyno.store.giving_up import GIVEN_UP_AFTER
from kdyno.store.records import BootRecord, RunRecord, VariantRecord

Cell = tuple[str, int]
"""A variant and a block: the place that one boot fills."""


class RunSummary(Frozen):
    """One line of `kdyno runs`."""

    id: str
    name: str
    created: AwareDatetime
    lane: Lane
    done: int
    """Boots that are `ok` or `failed`."""
    failed: int
    planned: int
    status: Literal["complete", "unfinished"]


class Progress(Frozen):
    """How far a run has come."""

    finished: frozenset[Cell]
    """Cells whose boot is `ok` or `failed`: nothing is left to do."""
    attempts: dict[Cell, int]
    """How many boots of a cell are on record, by cell: the number of its next attempt. No entry means 0."""


class Store:
    """A store by URL: `sqlite:///FILE` or `postgresql://USER@HOST/DATABASE`. Safe for threads and several processes.

    Opening makes the tables if there are none. Raises the errors of kdyno.store.errors, and DiskFull.
    """

    def __init__(self, url: str) -> None:
        parsed = database.parse(url)
        self.where = database.shown(parsed)
        self._engine = database.connect(parsed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._engine.dispose()

    def begin(self, run: RunRecord) -> None:
        """Record a run; nothing happens if a run with this id is on record."""
        try:
            with self._writing() as connection:
                if rows.lock_run(connection, run.id):
                    return
                connection.execute(schema.run.insert(), rows.run_row(run))
                connection.execute(schema.variant.insert(), rows.variant_rows(run))
        except IntegrityError:
            with self._reading() as connection:
                if not rows.lock_run(connection, run.id):  # otherwise another process began it in between
                    raise

    def keep_selftest(self, run_id: str, created: datetime, found: Mapping[str, Any]) -> None:
        """Record what the A/A experiments of a run came to, instead of what was recorded of them before."""
        table = schema.selftest
        with self._writing() as connection:
            connection.execute(table.delete().where(table.c.run == run_id))
            connection.execute(table.insert(), {"run": run_id, "created": created, "found": dict(found)})

    def selftests(self) -> list[dict[str, Any]]:
        """What all self-tests found, the newest first."""
        table = schema.selftest
        with self._reading() as connection:
            return [dict(row.found) for row in connection.execute(select(table).order_by(table.c.created.desc()))]

    def stop(self, run_id: str, blocks: int) -> None:
        """Record that the group-sequential rule ended a run after so many blocks."""
        with self._writing() as connection:
            connection.execute(schema.run.update().where(schema.run.c.id == run_id).values(stopped_at=blocks))

    def stopped_at(self, run_id: str) -> int | None:
        """After how many blocks the group-sequential rule ended a run; None if it didn't, or there is no such run."""
        with self._reading() as connection:
            query = select(schema.run.c.stopped_at).where(schema.run.c.id == run_id)
            return connection.execute(query).scalar()

    def progress(self, run_id: str) -> Progress:
        """Which cells of a run are done, and how often each was tried."""
        boot = schema.boot.c
        finished: set[Cell] = set()
        attempts: dict[Cell, int] = {}
        with self._reading() as connection:
            for row in connection.execute(
                select(boot.variant, boot.block, boot.attempt, boot.status).where(boot.run == run_id)
            ):
                cell = (row.variant, row.block)
                attempts[cell] = max(attempts.get(cell, 0), row.attempt + 1)
                if row.status != "lost":
                    finished.add(cell)
        return Progress(finished=frozenset(finished), attempts=attempts)

    def add_boot(self, run_id: str, boot: BootRecord, benchmarks: Sequence[Benchmark]) -> bool:
        """Record a boot with its samples, all or nothing; it is durable when this returns.

        Returns False, and changes nothing, if this attempt of this variant in this block is on record already.
        `benchmarks` describes at least those that the samples name. Raises BootInconsistent if it doesn't.
        """
        rows.check(boot, benchmarks)
        with self._writing() as connection:
            if not rows.lock_run(connection, run_id) or not rows.has_variant(connection, run_id, boot.variant):
                raise BootInconsistent(variant=boot.variant, block=boot.block, why=f"run {run_id} has no such variant")
            if rows.recorded(connection, run_id, boot):
                return False
            ids = rows.benchmark_ids(connection, run_id, boot, benchmarks)
            key = connection.execute(
                schema.boot.insert().returning(schema.boot.c.id), rows.boot_row(run_id, boot)
            ).scalar_one()
            if boot.samples:
                connection.execute(schema.sample.insert(), rows.sample_rows(key, boot, ids))
            if outcomes := rows.outcome_rows(key, boot):
                connection.execute(schema.outcome.insert(), outcomes)
        return True

    def runs(self) -> list[RunSummary]:
        """All runs, the newest first."""
        run, variant = schema.run.c, schema.variant.c
        with self._reading() as connection:
            width = _counts(connection, select(variant.run, func.count()).group_by(variant.run))
            ends = self._ends(connection)
            return [
                RunSummary(
                    id=row.id,
                    name=row.name,
                    created=row.created,
                    lane=row.lane,
                    done=sum(done for done, _ in ends[row.id].values()),
                    failed=sum(failed for _, failed in ends[row.id].values()),
                    planned=(row.stopped_at or row.blocks) * width.get(row.id, 0),
                    status=_status(row.stopped_at or row.blocks, width.get(row.id, 0), list(ends[row.id].values())),
                )
                for row in connection.execute(select(schema.run).order_by(run.created.desc(), run.id))
            ]

    def _ends(self, connection: Connection) -> dict[str, dict[str, tuple[int, int]]]:
        """By run and variant: how many blocks are done, and how many of them by a boot that failed."""
        boot = schema.boot.c
        failed = func.sum(case((boot.status == "failed", 1), else_=0))
        found: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
        for row in connection.execute(
            select(boot.run, boot.variant, func.count().label("done"), failed.label("failed"))
            .where(boot.status != "lost")
            .group_by(boot.run, boot.variant)
        ):
            found[row.run][row.variant] = (row.done, row.failed)
        return found

    def run(self, prefix: str) -> RunRecord:
        """The run whose id starts with `prefix`. Raises RunUnknown or RunAmbiguous, which name the nearest ones."""
        with self._reading() as connection:
            row = self._row_of(connection, prefix.lower())
            variant = schema.variant
            variants = connection.execute(select(variant).where(variant.c.run == row.id).order_by(variant.c.ordinal))
            return RunRecord(
                **row._mapping,
                variants=tuple(VariantRecord(name=v.name, recipe=v.recipe, images=v.images) for v in variants),
            )

    def benchmarks(self, run_id: str) -> list[Benchmark]:
        """The benchmarks of a run, in the order in which its boots first named them."""
        table = schema.benchmark
        columns = [table.c[name] for name in Benchmark.model_fields]
        with self._reading() as connection:
            found = connection.execute(select(*columns).where(table.c.run == run_id).order_by(table.c.id))
            return [Benchmark(**row._mapping) for row in found]

    def boots(self, run_id: str) -> list[BootRecord]:
        """All boots of a run in the order of their start; samples by benchmark and iteration."""
        boot, sample, benchmark, outcome = schema.boot, schema.sample, schema.benchmark, schema.outcome
        of_run = boot.c.run == run_id
        with self._reading() as connection:
            samples: dict[int, list[Sample]] = defaultdict(list)
            for row in connection.execute(
                select(sample.c.boot, benchmark.c.name, sample.c.iteration, sample.c.elapsed, sample.c.work)
                .join_from(sample, boot, sample.c.boot == boot.c.id)
                .join(benchmark, sample.c.benchmark == benchmark.c.id)
                .where(of_run)
                .order_by(sample.c.boot, sample.c.benchmark, sample.c.iteration)
            ):
                samples[row.boot].append(
                    Sample(benchmark=row.name, iteration=row.iteration, elapsed=row.elapsed, work=row.work)
                )
            outcomes: dict[tuple[int, str], dict[str, str]] = defaultdict(dict)
            for row in connection.execute(
                select(outcome).join_from(outcome, boot, outcome.c.boot == boot.c.id).where(of_run)
            ):
                outcomes[row.boot, row.kind][row.benchmark] = row.why
            found = connection.execute(
                select(boot).where(of_run).order_by(boot.c.position, boot.c.attempt, boot.c.id)
            ).all()
        return [rows.boot_record(row, samples[row.id], outcomes) for row in found]

    def _row_of(self, connection: Connection, prefix: str) -> Any:
        run = schema.run
        found = connection.execute(
            select(run).where(run.c.id.startswith(prefix, autoescape=True)).order_by(run.c.created.desc())
        ).all()
        if len(found) == 1:
            return found[0]
        if found:
            raise RunAmbiguous(prefix=prefix, count=len(found), nearest=_listed(found))
        others = connection.execute(select(run.c.id, run.c.name).order_by(run.c.created.desc())).all()
        if not others:
            raise RunUnknown(prefix=prefix, where=self.where, nearest="the store has no runs yet")
        close = difflib.get_close_matches(prefix, [row.id[: len(prefix)] for row in others], n=3, cutoff=0.5)
        nearest = [row for row in others if row.id[: len(prefix)] in close or row.name == prefix] or others
        raise RunUnknown(prefix=prefix, where=self.where, nearest=f"the nearest: {_listed(nearest)}")

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with errors_are_said(self.where), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with errors_are_said(self.where), database.writing(self._engine) as connection:
            yield connection


def _status(blocks: int, variants: int, ends: list[tuple[int, int]]) -> Literal["complete", "unfinished"]:
    """A run is complete when every variant is: all its blocks are done, or it was given up."""
    finished = [done >= blocks or (done == failed and failed >= GIVEN_UP_AFTER) for done, failed in ends]
    return "complete" if len(finished) == variants and all(finished) else "unfinished"


def _counts(connection: Connection, query: Any) -> dict[str, int]:
    return {row[0]: row[1] for row in connection.execute(query)}


def _listed(found: Iterable[Any]) -> str:
    return ", ".join(f"{row.id[:12]} ({row.name})" for row in itertools.islice(found, 5))
