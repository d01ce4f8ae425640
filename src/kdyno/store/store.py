"""The store of runs, boots and measurements. No boot and no sample in it is ever changed or overwritten.

This module has its transactions, and everything that is written; reading.py and history.py make what is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Connection, select

from kdyno.base.lanes import LaneName
from kdyno.base.measurement import Benchmark
from kdyno.store import database, exchange, history, named_run, reading, rows, schema
from kdyno.store.checks import keys_of
from kdyno.store.errors import BootDiffers, RecordCorrupt, RecordRefused, RunThere, translate_driver_errors
from kdyno.store.exchange import Removed
from kdyno.store.listing import RunSummary, summaries
from kdyno.store.reading import End, PlacedEnd
from kdyno.store.records import Boot, BootPlace, BootRecord, RunRecord
from kdyno.store.triage import Triage, insert_triage, read_triage
from kdyno.store.url import Access, StoreUrl, parse
from kdyno.store.whole import WholeBoot, WholeRun

if TYPE_CHECKING:
    from kdyno.store.series import SeriesRows


class Store:
    """A store by URL: `sqlite:///FILE` or `postgresql://USER@HOST/DATABASE`. Safe for threads and several processes.

    Opening makes it, if `access` allows it and it doesn't exist. Its content may be somebody else's: it is checked, and
    RecordCorrupt names the record and what is wrong with it. Raise the errors of kdyno.store.url and .errors, and
    DiskFull.
    """

    def __init__(self, named: str | StoreUrl, access: Access = "make") -> None:
        self._url = parse(named) if isinstance(named, str) else named
        self._engine = database.connect(self._url, access)

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
        self._engine.dispose()

    # Writing.

    def begin(self, run: RunRecord, cells: Iterable[tuple[BootPlace, str]]) -> None:
        """Record a run and the keys of its boots; do nothing if a run with this id is on record."""
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
        """Record the results of a run's A/A experiments, instead of those recorded before."""
        table = schema.selftest
        with self._writing() as connection:
            connection.execute(table.delete().where(table.c.run == run_id))
            rows.insert_selftest(connection, run_id, created, result)

    def add_triage(self, entry: Triage) -> None:
        """Record what somebody says of a change in the history."""
        with self._writing() as connection:
            insert_triage(connection, entry)

    def stop(self, run_id: str, blocks: int) -> None:
        """Record that the group-sequential rule ended a run after so many blocks."""
        with self._writing() as connection:
            run = self._run(connection, run_id)
            row = connection.execute(select(schema.run).where(schema.run.c.id == run.id)).one()
            digest = rows.digest_of_run(connection, row._asdict() | {"stopped_at": blocks})
            values = {"stopped_at": blocks, "sha256": digest}
            connection.execute(schema.run.update().where(schema.run.c.id == run.id).values(values))

    def add_boot(self, boot: Boot, benchmarks: Sequence[Benchmark]) -> bool:
        """Record a boot with its samples, all or nothing; it is durable when this returns.

        The store counts attempts: `boot.attempt` is ignored. Return False, and change nothing, if a boot with this key
        is on record as `ok` or `failed`. `benchmarks` describes at least those that the samples name, in the agent's
        order. Raise BootInconsistent if it doesn't.
        """
        rows.check(boot, benchmarks)
        with self._writing() as connection:
            attempt = rows.next_attempt(connection, boot.key)
            if attempt is None:
                return False
            rows.insert_boot(connection, boot, attempt, benchmarks)
        return True

    def take_in(self, whole: WholeRun) -> int:
        """Put a run on record as `whole_run` gave it, all or nothing; return how many boots were new.

        Boots that are on record, as other runs may share them, are unchanged. Raise RunThere, BootDiffers,
        BootInconsistent and RecordCorrupt.
        """
        for one in whole.boots:
            rows.check(one.boot, one.benchmarks)
        with self._writing() as connection:
            if rows.is_on_record(connection, whole.run.id):
                raise RunThere(run=whole.run.id, where=self.where)
            rows.insert_run(connection, whole.run, whole.in_cells)
            if whole.selftest:
                rows.insert_selftest(connection, whole.run.id, whole.selftest.created, whole.selftest.found)
            added = 0
            for key, attempts in whole.by_key.items():
                if rows.next_attempt(connection, key) is None:
                    self._require_alike(connection, key, attempts[-1])
                    continue
                for one in attempts:
                    attempt = rows.next_attempt(connection, key)
                    assert attempt is not None, "only the last boot of a key may not be lost"
                    rows.insert_boot(connection, one.boot, attempt, one.benchmarks)
                    added += 1
            if self._run(connection, whole.run.id) != whole.run:
                raise RecordCorrupt(
                    where=self.where, record=f"run {whole.run.id}", why="it is read differently from how it was written"
                )
            return added

    def remove_run(self, run_id: str) -> Removed:
        """Take a run off the record, with the boots that no other run has. Raise RunUnknown."""
        with self._writing() as connection:
            run = self._run(connection, run_id)
            others = [other for other in reading.all_runs(connection, self._url) if other.id != run.id]
            kept = set[str]().union(*map(keys_of, others))
            return exchange.remove_run(connection, run.id, keys_of(run), kept)

    def remove_boots(self, keys: Iterable[str]) -> Removed:
        """Take boots off the record that no run has; those that a run has by now stay."""
        with self._writing() as connection:
            kept = set[str]().union(*map(keys_of, reading.all_runs(connection, self._url)))
            return exchange.remove_boots(connection, set(keys) - kept)

    # Reading. Whatever is asked for, RecordCorrupt names the record that can't be read.

    def record(self, name: str) -> AbstractContextManager[None]:
        """Turn pydantic's errors about a record of this store into a RecordCorrupt that names it."""
        return rows.read(self._url, name)

    def runs(self) -> list[RunSummary]:
        """Return all runs, the newest first."""
        with self._reading() as connection:
            return summaries(connection, self._url)

    def has_run(self, run_id: str) -> bool:
        with self._reading() as connection:
            return rows.is_on_record(connection, run_id)

    def run(self, prefix: str) -> RunRecord:
        """Return the run whose id starts with `prefix`. Raise RunUnknown or RunAmbiguous, which name the nearest
        ones.
        """
        with self._reading() as connection:
            return self._run(connection, prefix.lower())

    def whole_runs(self) -> list[RunRecord]:
        """Return all runs with their whole records except the boots, the oldest first."""
        with self._reading() as connection:
            return reading.all_runs(connection, self._url)

    def whole_run(self, run_id: str) -> WholeRun:
        """Return the whole record of a run, check boots of its kernels too; boots in the order in which they came."""
        with self._reading() as connection:
            return reading.whole_run(connection, self._url, self._run(connection, run_id))

    def boots(self, run_id: str) -> list[BootRecord]:
        """Return all boots of a run, lost ones too, by position and attempt; samples by benchmark and iteration."""
        with self._reading() as connection:
            return reading.boots_in_place(connection, self._url, run_id)

    def ends_in_place(self, run_id: str) -> list[PlacedEnd]:
        """Return how all boots of a run ended, lost ones too, by position and attempt."""
        with self._reading() as connection:
            return reading.ends_in_place(connection, self._url, run_id)

    def benchmarks(self, run_id: str) -> list[Benchmark]:
        """Return the benchmarks of a run, in the order in which its boots name them; each name once, with its first
        meaning.
        """
        with self._reading() as connection:
            return reading.benchmarks(connection, self._url, schema.boot.c.key.in_(reading.keys_of_run(run_id)))

    def boot(self, key: str) -> tuple[Boot, list[Benchmark]] | None:
        """Return the boot with this key and the benchmarks that it described, if it is on record as `ok` or
        `failed`.
        """
        with self._reading() as connection:
            ended = self._ended(connection, key)
            benchmarks = reading.benchmarks(connection, self._url, schema.boot.c.key == key)
        return (ended, benchmarks) if ended else None

    def ends(self, keys: Iterable[str]) -> dict[str, End]:
        """Return how the boots with these keys ended that are on record as `ok` or `failed`, in the order of their
        start.
        """
        with self._reading() as connection:
            return reading.ends(connection, self._url, keys)

    def count_reruns(self, keys: Iterable[str]) -> Counter[str]:
        """Return how often the boots with these keys were run again because other work on the host disturbed them."""
        with self._reading() as connection:
            return reading.count_reruns(connection, self._url, keys)

    def count_attempts(self, keys: Iterable[str]) -> Counter[str]:
        """Return how many boots with these keys are on record, lost ones too."""
        with self._reading() as connection:
            return reading.count_attempts(connection, keys)

    def keys(self) -> dict[str, datetime]:
        """Return the keys of all boots, and when each of them was started for the last time."""
        with self._reading() as connection:
            return reading.last_starts(connection, self._url)

    def keys_of_runs(self) -> set[str]:
        """Return the keys of the boots that runs have, and of the check boots of their kernels."""
        with self._reading() as connection:
            checks = (keys_of(run) for run in reading.all_runs(connection, self._url))
            return set(connection.execute(select(schema.cell.c.key)).scalars()).union(*checks)

    def artefacts(self, but: Collection[str] = ()) -> set[str]:
        """Return the SHA-256 of the artefacts of all boots but those with these keys."""
        with self._reading() as connection:
            return exchange.artefacts(connection, but)

    def selftests(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the results of all self-tests, the newest first, each with its run. The reader checks their form."""
        with self._reading() as connection:
            return [(run, kept.found) for run, kept in reading.selftests(connection, self._url)]

    def newest(self) -> str | None:
        """Return the id of the newest run."""
        with self._reading() as connection:
            return history.newest(connection, self._url)

    def stopped_at(self, run_id: str) -> int | None:
        """Return after how many blocks the group-sequential rule ended a run; None if it didn't, or there is no such
        run.
        """
        with self._reading() as connection:
            return history.stopped_at(connection, self._url, run_id)

    def start_times(self, run_id: str) -> list[datetime]:
        """Return when this run was begun, and each earlier one that shares boots of several of its variants with it."""
        with self._reading() as connection:
            run = self._run(connection, run_id)
            others = map(partial(self._run, connection), history.sharing(connection, run.id))
            return [other.created for other in (run, *others) if other.created <= run.created]

    def boot_seconds(
        self, lane: LaneName, events: str | None, workload: str, limit: int = 50
    ) -> tuple[str, list[float]] | None:
        """Return the newest run in this lane, with these events of the PMU, this type of workload and `ok` boots: its
        id, and the seconds of its boots.
        """
        with self._reading() as connection:
            return history.boot_seconds(connection, self._url, lane, events, workload, limit)

    def series(self) -> SeriesRows:
        """Return the values of all runs, and where they belong."""
        from kdyno.store.series import read_series  # brings numpy: only a history pays for it

        with self._reading() as connection:
            return read_series(connection, self._url)

    def triage(self) -> list[Triage]:
        """Return what people say of changes in the history, the oldest entry first."""
        with self._reading() as connection:
            return read_triage(connection, self._url)

    def count_records(self) -> tuple[int, int]:
        """Return the numbers of runs and of boots: a series is another one if they differ, and rarely otherwise."""
        with self._reading() as connection:
            return history.count_records(connection)

    def _run(self, connection: Connection, prefix: str) -> RunRecord:
        return reading.run_of(connection, self._url, named_run.row_of(connection, self._url, prefix))

    def _require_alike(self, connection: Connection, key: str, theirs: WholeBoot) -> None:
        """Raise BootDiffers unless the boot on record equals the other one of this key."""
        ours = self._ended(connection, key)
        fields = ("seed", "status", "samples", "unsupported", "broken")
        if theirs.boot.status != "lost" and any(getattr(ours, name) != getattr(theirs.boot, name) for name in fields):
            raise BootDiffers(key=key[:12], where=self.where)

    def _ended(self, connection: Connection, key: str) -> Boot | None:
        """Return the boot with this key that isn't lost."""
        boots = reading.boots(connection, self._url, schema.boot.c.key == key).values()
        return next((boot for boot in boots if boot.status != "lost"), None)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with translate_driver_errors(self._url), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with translate_driver_errors(self._url), database.writing(self._engine) as connection:
            yield connection
