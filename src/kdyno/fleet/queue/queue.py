"""The queue of a fleet: who carries out which task, decided by PostgreSQL.

A lease ends by the clock of the database, and each new lease of a task has a higher fence. A worker commits with its
fence: a worker that was stopped, whose lease somebody else took over, is refused. A result is on record once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Engine, Row, Text, cast, create_engine, func, literal_column, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError

from kdyno.fleet.errors import NotPostgresql, QueueFailed
from kdyno.fleet.queue import schema, statements
from kdyno.fleet.queue.migrate import migrate, require_current
from kdyno.fleet.queue.model import EndedTask, HostCheck, Kind, Offer, Task, TaskClaim, TaskName, WaitingTask, Worker
from kdyno.store.url import StoreUrl, hide_secrets, parse

LEASE_SECONDS = 30.0
"""The seconds after which a worker that is silent loses its tasks."""
HOSTS_ENDED = 2
"""A subject that ended workers on so many hosts, and never succeeded, is quarantined; of one that has succeeded, one
and the same task must have ended them. Before its first success so many hosts try it at a time.
"""
DEATHS = 3
"""So is one that ended so many workers of one host."""
BATCH = 1000
"""The tasks of one statement."""


class Queue:
    """The queue in a database. Safe for threads. Raises QueueFailed, besides the errors of each method."""

    def __init__(self, named: str | StoreUrl, lease_seconds: float = LEASE_SECONDS) -> None:
        """Name the database; nothing is opened yet. Raises NotPostgresql, StoreUrlInvalid and StoreFileUnfit."""
        self._url = parse(named) if isinstance(named, str) else named
        if self._url.path:
            raise NotPostgresql(where=self._url.where)
        self.lease_seconds = lease_seconds
        self._engine = create_engine(
            self._url.url,
            pool_pre_ping=True,
            pool_size=1,
            max_overflow=32,
            pool_timeout=60,
            connect_args={"connect_timeout": 10},
        )

    @property
    def where(self) -> str:
        """Its name in messages."""
        return self._url.where

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    # The tables.

    def migrate(self, fleet: str) -> None:
        """Make the tables, or bring them to this version. Raises OtherFleet and QueueNewer."""
        with self._translated():
            migrate(self._engine, self.where, fleet)

    def require_current(self, fleet: str) -> None:
        """Raise QueueMissing, QueueOlder, QueueNewer or OtherFleet unless this is the queue of this fleet."""
        with self._translated():
            require_current(self._engine, self.where, fleet)

    # What a client does.

    def put(self, tasks: Sequence[Task]) -> int:
        """Record tasks, each once; return how many were new.

        A task that another run waits for becomes this one's, whose tickets carry it out; both get its result.
        """
        added = 0
        with self._transaction() as connection:
            for start in range(0, len(tasks), BATCH):
                batch = tasks[start : start + BATCH]
                blocks = sorted({task.block for task in batch if task.block})
                if blocks:
                    connection.execute(
                        insert(schema.block).on_conflict_do_nothing(), [{"id": block} for block in blocks]
                    )
                rows = [task.model_dump() for task in batch]
                new = insert(schema.task).values(rows)
                is_unfinished = schema.task.c.state.in_(("open", "leased"))
                new = new.on_conflict_do_update(
                    index_elements=["key", "attempt"], set_={"run": new.excluded.run}, where=is_unfinished
                )
                added += sum(connection.execute(new.returning(literal_column("xmax = 0"))).scalars())
            subjects = sorted({task.subject for task in tasks})
            if bad := connection.execute(statements.QUARANTINED_AMONG, {"subjects": subjects}).scalars().all():
                connection.execute(statements.QUARANTINE_NEW, {"subjects": bad})
        return added

    def ended(self, names: Iterable[TaskName]) -> list[EndedTask]:
        """Return those of these tasks that have ended; of a block of the wall lane only if all of its tasks have.

        A block that was returned is not carried out again by another host.
        """
        keys, attempts = _columns(names)
        with self._transaction() as connection:
            rows = connection.execute(statements.ENDED, {"keys": keys, "attempts": attempts}).all()
            if blocks := sorted({row.block for row in rows if row.block}):
                connection.execute(statements.RELEASE, {"blocks": blocks})
        return [
            EndedTask(row.key, row.attempt, row.host or "", row.result, "")
            if row.state == "done"
            else EndedTask(row.key, row.attempt, row.host or "", None, str(row.result["reason"]))
            for row in rows
        ]

    def standing(self, run: str, kind: Kind) -> tuple[list[WaitingTask], int]:
        """Return the tasks that a worker could claim now, in order, and the number of valid leases."""
        values = {"run": run, "kind": kind, "lease": self.lease_seconds}
        with self._transaction() as connection:
            rows = connection.execute(statements.STANDING, values).all()
        claimable = [WaitingTask(row.key, row.host, frozenset(row.refusals)) for row in rows if row.is_claimable]
        return claimable, len(rows) - len(claimable)

    def refusals(self, run: str) -> dict[TaskName, dict[str, str]]:
        """Return why workers refused tasks of a run that are still open: the reason by the worker's name, by task."""
        with self._transaction() as connection:
            rows = connection.execute(statements.REFUSALS, {"run": run}).all()
        return {(row.key, row.attempt): row.refusals for row in rows}

    def withdraw(self, run: str) -> int:
        """Remove the tasks of a run that nobody has begun; return how many."""
        with self._transaction() as connection:
            return connection.execute(statements.WITHDRAW, {"run": run}).rowcount

    def forget(self, run: str) -> None:
        """Remove the ended tasks of a run, whose results are on record elsewhere."""
        with self._transaction() as connection:
            connection.execute(statements.FORGET, {"run": run})
            connection.execute(statements.FORGET_BLOCKS)

    def documents(self) -> Iterator[str]:
        """Yield the JSON of all tasks on record: what they are, and what came of those that have ended."""
        columns = (schema.task.c.spec, schema.task.c.result)
        with self._transaction() as connection:
            for row in connection.execute(select(*(cast(column, Text) for column in columns))):
                yield from filter(None, row)

    def workers(self) -> list[Worker]:
        """Return the workers that were seen within a lease, by name."""
        with self._transaction() as connection:
            rows = connection.execute(statements.WORKERS, {"lease": self.lease_seconds}).all()
        return [Worker(row.id, row.name, row.host, Offer.model_validate(row.offer), row.package) for row in rows]

    def note_check(self, host: str, *, passed: bool, detail: str) -> None:
        """Record what came of the A/A of a host, in place of the one before."""
        new = insert(schema.host_check).values(host=host, passed=passed, detail=detail)
        newer = {"passed": new.excluded.passed, "detail": new.excluded.detail, "checked": func.now()}
        with self._transaction() as connection:
            connection.execute(new.on_conflict_do_update(index_elements=["host"], set_=newer))

    def checks(self) -> dict[str, HostCheck]:
        """Return what came of the last A/A of each host that had one."""
        with self._transaction() as connection:
            rows = connection.execute(select(schema.host_check)).all()
        return {row.host: HostCheck(row.passed, row.detail, row.checked) for row in rows}

    def quarantined(self) -> dict[str, str]:
        """Return the quarantined subjects, each with its reason."""
        with self._transaction() as connection:
            return {row.subject: row.reason for row in connection.execute(statements.QUARANTINED)}

    def release(self, subject: str) -> int:
        """Lift the quarantine of a subject: its tasks may be carried out again. Return how many there are."""
        with self._transaction() as connection:
            connection.execute(statements.EXONERATE, {"subject": subject})
            return connection.execute(statements.LIFT, {"subject": subject}).rowcount

    @contextmanager
    def listening(self) -> Iterator[Callable[[float], None]]:
        """Yield a function that waits until tasks have ended, at most so many seconds.

        It is a hint: after a lost connection it waits the whole time.
        """
        listener = Listener(self._engine)
        try:
            yield listener.wait
        finally:
            listener.close()

    # What a worker does.

    def register(self, worker: Worker) -> None:
        """Put a worker on record."""
        row = {
            "id": worker.id,
            "name": worker.name,
            "host": worker.host,
            "offer": worker.offer.model_dump(),
            "package": worker.package,
        }
        with self._transaction() as connection:
            connection.execute(statements.FORGET_WORKERS, {"lease": self.lease_seconds})
            connection.execute(insert(schema.worker).values(row).on_conflict_do_nothing())

    def leave(self, worker: Worker) -> None:
        """Take a worker off the record; its tasks are open again, and nobody is blamed."""
        with self._transaction() as connection:
            connection.execute(statements.REOPEN, {"worker": worker.id})
            connection.execute(schema.worker.delete().where(schema.worker.c.id == worker.id))

    def claim(self, worker: Worker, run: str, kind: Kind, preferred: str = "") -> TaskClaim | None:
        """Return a task of a run for a worker, with a lease; None if there is none that it may carry out.

        Of several, the preferred key comes first, or the block that this host has begun; then the order of the run.
        """
        values = {
            "run": run,
            "kind": kind,
            "preferred": preferred,
            "worker": worker.id,
            "name": worker.name,
            "host": worker.host,
            "lease": self.lease_seconds,
        }
        not_now: list[str] = []
        while True:
            with self._transaction() as connection:
                if kind == "boot-wall":
                    # Two workers of one host wait for each other here: the slot is one for the host.
                    connection.execute(statements.LOCK_HOST, {"host": worker.host})
                    self._reopen_blocks_of_the_dead(connection, values)
                row = self._lease_one(connection, {**values, "not_now": not_now})
                if row is None:
                    return None
                if (
                    row.block
                    and not connection.execute(statements.BIND, {"block": row.block, "host": worker.host}).all()
                ):
                    connection.rollback()  # another host was faster
                    continue
                if row.before_state == "leased" and self._has_ended_workers(connection, row):
                    continue
                if self._is_on_trial(connection, row.subject):
                    connection.rollback()
                    not_now.append(row.subject)
                    continue
                return TaskClaim(_task(row), row.fence)

    @staticmethod
    def _lease_one(connection: Connection, values: dict[str, Any]) -> Row[Any] | None:
        """Lease the first task that the worker may have; None if there is none."""
        ways = (
            (statements.CLAIM_OF_BLOCK,)
            if values["kind"] == "boot-wall"
            else (statements.CLAIM_PREFERRED, statements.CLAIM_EXPIRED, statements.CLAIM_OPEN)
        )
        rows = (connection.execute(way, values).one_or_none() for way in ways)
        return next((row for row in rows if row is not None), None)

    def renew(self, worker: Worker, claims: Iterable[TaskClaim]) -> set[TaskName]:
        """Renew the leases of a worker; return the tasks that it still has."""
        held = list(claims)
        keys, attempts = _columns(claim.task.name for claim in held)
        values = {
            "worker": worker.id,
            "lease": self.lease_seconds,
            "keys": keys,
            "attempts": attempts,
            "fences": [claim.fence for claim in held],
        }
        with self._transaction() as connection:
            if not connection.execute(statements.SEEN, {"worker": worker.id}).rowcount:
                row = {"id": worker.id, "name": worker.name, "host": worker.host, "package": worker.package}
                offer = worker.offer.model_dump()
                connection.execute(insert(schema.worker).values(offer=offer, **row).on_conflict_do_nothing())
            return {(row.key, row.attempt) for row in connection.execute(statements.RENEW, values)}

    def commit(self, worker: Worker, claim: TaskClaim, result: dict[str, Any]) -> bool:
        """Record the result of a task, durably; return False if the lease is another worker's by now.

        A commit whose answer was lost may be repeated.
        """
        key, attempt, fence = claim.token
        values = {"key": key, "attempt": attempt, "fence": fence, "worker": worker.id, "result": result}
        with self._transaction() as connection:
            row = connection.execute(statements.COMMIT, values).one_or_none()
            if row is None:
                return bool(connection.execute(statements.COMMITTED, _without(values, "result")).all())
            connection.execute(statements.EXONERATE, {"subject": row.subject})
            connection.execute(statements.NOTIFY, {"run": row.run})
        return True

    def refuse(self, worker: Worker, claim: TaskClaim, reason: str) -> None:
        """Give a task back that this worker can't carry out: others may."""
        key, attempt, fence = claim.token
        values = {"key": key, "attempt": attempt, "fence": fence, "name": worker.name, "reason": reason}
        with self._transaction() as connection:
            connection.execute(statements.REFUSE, values)
            connection.execute(statements.NOTIFY, {"run": claim.task.run})

    def give_back(self, claim: TaskClaim) -> None:
        """Give a task back that was not carried out: anyone may."""
        key, attempt, fence = claim.token
        with self._transaction() as connection:
            connection.execute(statements.GIVE_BACK, {"key": key, "attempt": attempt, "fence": fence})

    def _is_on_trial(self, connection: Connection, subject: str) -> bool:
        """Return whether enough hosts try a subject that has never succeeded: it may end all workers that try it."""
        if self._is_proven(connection, subject):
            return False
        connection.execute(statements.LOCK_SUBJECT, {"subject": subject})  # until the end of the transaction
        return bool(connection.execute(statements.LEASES, {"subject": subject}).scalar_one() > HOSTS_ENDED)

    @staticmethod
    def _is_proven(connection: Connection, subject: str) -> bool:
        return bool(connection.execute(statements.PROVEN, {"subject": subject}).scalar())

    def _has_ended_workers(self, connection: Connection, row: Row[Any]) -> bool:
        """Note that a worker ended with a task; return whether the task is quarantined now."""
        if not connection.execute(
            statements.IS_SILENT, {"lease": self.lease_seconds, "worker": row.before_worker}
        ).scalar():
            return False  # it lives, and lost the task only
        names = {"subject": row.subject, "key": row.key}
        dead = {**names, "host": row.before_host, "worker": row.before_worker}
        connection.execute(schema.death.insert().values(dead))
        is_proven = self._is_proven(connection, row.subject)
        values = {**names, "is_proven": is_proven, "lease": self.lease_seconds}
        deaths = {row.host: row.deaths for row in connection.execute(statements.DEATHS, values)}
        if len(deaths) < HOSTS_ENDED and sum(deaths.values()) < DEATHS:
            return False
        reason = f"quarantined: {sum(deaths.values())} workers ended while they carried it out, on {', '.join(deaths)}"
        quarantine = {"subject": row.subject, "reason": reason, "key": row.key, "attempt": row.attempt}
        connection.execute(statements.QUARANTINE, quarantine)
        connection.execute(statements.NOTIFY, {"run": row.run})
        return True

    def _reopen_blocks_of_the_dead(self, connection: Connection, values: dict[str, Any]) -> None:
        """Open the unfinished blocks of hosts without a living worker, with all of their boots."""
        bound = {"host": values["host"], "lease": self.lease_seconds}
        if blocks := [row.id for row in connection.execute(statements.UNBIND, bound)]:
            connection.execute(statements.REOPEN_BLOCKS, {"blocks": blocks})

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._translated(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            why = hide_secrets(" ".join(str(error.orig).split()), self._url)
            raise QueueFailed(where=self.where, why=why) from error


class Listener:
    """A connection that hears when tasks have ended."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Any = None

    def wait(self, seconds: float) -> None:
        """Wait for news, at most so many seconds."""
        started = time.monotonic()
        try:
            if self._connection is None:
                # One of the driver's own: the pool would close it when nobody holds its proxy.
                positional, named = self._engine.dialect.create_connect_args(self._engine.url)
                self._connection = self._engine.dialect.connect(*positional, connect_timeout=10, **named)
                self._connection.autocommit = True
                self._connection.execute(f"LISTEN {statements.CHANNEL}")
                return  # what ended before is not announced
            for _ in self._connection.notifies(timeout=seconds, stop_after=1):
                pass
        except Exception:
            self.close()
            time.sleep(max(0.0, seconds - (time.monotonic() - started)))

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _columns(names: Iterable[TaskName]) -> tuple[list[str], list[int]]:
    pairs = list(names)
    return [key for key, _ in pairs], [attempt for _, attempt in pairs]


def _without(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


def _task(row: Row[Any]) -> Task:
    return Task(
        key=row.key,
        attempt=row.attempt,
        run=row.run,
        kind=row.kind,
        subject=row.subject,
        block=row.block,
        position=row.position,
        spec=row.spec,
    )
