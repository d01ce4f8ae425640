"""The queue in PostgreSQL: leases, fences, blocks on one host, quarantine."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from postgres_server import PostgresServer
from sqlalchemy import create_engine, text

from kdyno.fleet.errors import NotPostgresql, OtherFleet, QueueFailed, QueueMissing, QueueNewer
from kdyno.fleet.queue import schema
from kdyno.fleet.queue.migrate import VERSION_TABLE
from kdyno.fleet.queue.model import Kind, Offer, Task, TaskClaim, Worker
from kdyno.fleet.queue.queue import Queue
from kdyno.fleet.queue.versions import r0003_host_check as newest
from tests.unit.fleet.conftest import FLEET, empty

OFFER = Offer(
    slots={"boot-model": 2, "boot-wall": 1},
    kvm=False,
    family="",
    cpu="a CPU",
    memory_mb=1,
    disk_mb=1,
    toolchains=(),
    machines=("fake",),
)


def worker(name: str, host: str | None = None) -> Worker:
    return Worker(f"{name}-id", name, host or name, OFFER, "kdyno 0")


ONE, TWO, THREE = worker("one"), worker("two"), worker("three")


def boots(
    count: int, kind: Kind = "boot-model", *, per_block: int = 0, subject: str = "image", attempt: int = 0
) -> list[Task]:
    return [
        Task(
            key=f"k{number}",
            attempt=attempt,
            run="run",
            kind=kind,
            subject=subject,
            block=f"b{number // per_block}" if per_block else None,
            position=number,
            spec={"seed": number},
        )
        for number in range(count)
    ]


def claim(queue: Queue, by: Worker, kind: Kind = "boot-model", preferred: str = "") -> TaskClaim:
    claimed = queue.claim(by, "run", kind, preferred)
    assert claimed
    return claimed


def waiting(queue: Queue, kind: Kind = "boot-model") -> list[str]:
    return [task.key for task in queue.standing("run", kind)[0]]


def execute(server: PostgresServer, statement: str, **values: Any) -> None:
    engine = create_engine(server.url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(text(statement), values)
    engine.dispose()


def let_time_pass(server: PostgresServer, *workers: Worker) -> None:
    """The leases of these workers end, and nobody has seen them since; the clock of the database isn't touched."""
    past = timedelta(hours=-2)
    for one in workers:
        execute(server, "UPDATE kdyno_fleet_task SET until = now() + :past WHERE worker = :id", past=past, id=one.id)
        execute(server, "UPDATE kdyno_fleet_worker SET seen = now() + :past WHERE id = :id", past=past, id=one.id)


@pytest.fixture
def started_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of the tests has just been started: leases get a span from there, which these tests don't wait for."""
    from kdyno.fleet.queue import statements

    for name, statement in vars(statements).items():
        if hasattr(statement, "text") and "pg_postmaster_start_time()" in statement.text:
            rewritten = text(statement.text.replace("pg_postmaster_start_time()", "now() - interval '1 year'"))
            monkeypatch.setattr(statements, name, rewritten)


def test_the_migrations_make_the_tables_of_the_schema(server: PostgresServer, queue: Queue) -> None:
    engine = create_engine(server.url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": VERSION_TABLE, "compare_server_default": False}
        )
        assert compare_metadata(context, schema.tables) == []
    engine.dispose()
    queue.migrate(FLEET)  # once more changes nothing
    queue.require_current(FLEET)


def test_a_queue_that_is_missing_older_newer_or_of_another_fleet_is_refused(server: PostgresServer) -> None:
    empty(server.url)
    with Queue(server.url) as queue:
        with pytest.raises(QueueMissing):
            queue.require_current(FLEET)
        queue.migrate(FLEET)
        execute(server, f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
        for refused in (queue.require_current, queue.migrate):
            with pytest.raises(QueueNewer, match="version 9999"):
                refused(FLEET)
        execute(server, f"UPDATE {VERSION_TABLE} SET version_num = '{newest.revision}'")
        with pytest.raises(OtherFleet, match="belongs to the fleet fleet-of-tests, and this is the fleet another"):
            queue.require_current("another")
        with pytest.raises(OtherFleet):
            queue.migrate("another")


def test_a_queue_in_sqlite_is_refused() -> None:
    with pytest.raises(NotPostgresql, match="only PostgreSQL has leases"):
        Queue("sqlite:///queue.sqlite")


def test_a_server_that_does_not_answer_is_named_without_a_password() -> None:
    with Queue("postgresql://kdyno:hush@127.0.0.1:1/db") as queue, pytest.raises(QueueFailed) as failed:
        queue.workers()
    assert "hush" not in str(failed.value)
    assert "127.0.0.1" in str(failed.value)


def test_a_task_is_recorded_once(queue: Queue) -> None:
    assert queue.put(boots(3)) == 3
    assert queue.put(boots(4)) == 1
    assert waiting(queue) == ["k0", "k1", "k2", "k3"]


def test_a_task_is_claimed_once_and_ends_once(queue: Queue) -> None:
    queue.put(boots(1))
    first = claim(queue, ONE)
    assert queue.claim(TWO, "run", "boot-model") is None
    assert queue.ended([("k0", 0)]) == []
    assert queue.commit(ONE, first, {"status": "ok"})
    assert queue.commit(ONE, first, {"status": "ok"}), "a commit whose answer was lost may be repeated"
    assert not queue.commit(TWO, first, {"status": "other"})
    [ended] = queue.ended([("k0", 0)])
    assert (ended.host, ended.result) == ("one", {"status": "ok"})
    assert queue.put(boots(1)) == 0
    assert queue.claim(TWO, "run", "boot-model") is None


def test_a_named_task_comes_first_then_the_order_of_the_run(queue: Queue) -> None:
    queue.put(boots(3))
    keys = []
    for _ in range(3):
        claimed = claim(queue, ONE, preferred="k2")
        keys.append(claimed.task.key)
        queue.commit(ONE, claimed, {})
    assert keys == ["k2", "k0", "k1"]


def test_two_hosts_try_what_has_never_succeeded(queue: Queue) -> None:
    [other] = boots(1)
    queue.put([*boots(4, subject="new"), other.model_copy(update={"key": "other-k0", "position": 9})])
    first = claim(queue, ONE)
    claim(queue, TWO)
    assert claim(queue, THREE).task.key == "other-k0"
    assert queue.claim(THREE, "run", "boot-model") is None
    queue.commit(ONE, first, {})
    assert claim(queue, THREE).task.key == "k2"
    assert claim(queue, ONE).task.key == "k3"


@pytest.mark.usefixtures("started_long_ago")
def test_what_ends_the_first_two_hosts_at_once_is_quarantined(server: PostgresServer, queue: Queue) -> None:
    registered(queue, ONE, TWO)
    queue.put(boots(4, subject="bad"))
    claim(queue, ONE)
    claim(queue, TWO)
    let_time_pass(server, ONE, TWO)
    assert queue.claim(THREE, "run", "boot-model") is None, "no third host is ended"
    assert list(queue.quarantined()) == ["bad"]


def test_many_claimants_at_once_get_each_task_once(queue: Queue) -> None:
    queue.put(boots(60))
    queue.commit(ONE, claim(queue, ONE), {})
    workers = [worker(f"w{number}") for number in range(12)]

    def work(by: Worker) -> list[str]:
        keys = []
        while claimed := queue.claim(by, "run", "boot-model"):
            keys.append(claimed.task.key)
            assert queue.commit(by, claimed, {})
        return keys

    with ThreadPoolExecutor(len(workers)) as threads:
        claimed_keys = [key for keys in threads.map(work, workers) for key in keys]
    assert sorted(claimed_keys) == sorted(task.key for task in boots(60)[1:])


@pytest.mark.usefixtures("started_long_ago")
def test_the_commit_of_a_worker_whose_lease_is_another_ones_is_refused(server: PostgresServer, queue: Queue) -> None:
    queue.register(ONE)
    queue.put(boots(1))
    zombie = claim(queue, ONE)
    let_time_pass(server, ONE)
    taken_over = claim(queue, TWO)
    assert taken_over.fence > zombie.fence
    assert queue.renew(ONE, [zombie]) == set()
    assert not queue.commit(ONE, zombie, {"by": "the zombie"})
    assert queue.commit(TWO, taken_over, {"by": "two"})
    assert not queue.commit(ONE, zombie, {"by": "the zombie"})
    assert queue.ended([("k0", 0)])[0].result == {"by": "two"}


@pytest.mark.usefixtures("started_long_ago")
def test_a_lease_that_ran_out_and_that_nobody_took_still_commits(server: PostgresServer, queue: Queue) -> None:
    queue.put(boots(1))
    claimed = claim(queue, ONE)
    let_time_pass(server, ONE)
    assert queue.commit(ONE, claimed, {})


@pytest.mark.usefixtures("started_long_ago")
def test_a_renewed_lease_is_kept(server: PostgresServer, queue: Queue) -> None:
    queue.put(boots(1))
    claimed = claim(queue, ONE)
    let_time_pass(server, ONE)
    assert queue.renew(ONE, [claimed]) == {("k0", 0)}
    assert queue.claim(TWO, "run", "boot-model") is None


def test_a_lease_is_kept_for_its_span_after_the_server_has_started(server: PostgresServer, queue: Queue) -> None:
    """While the server was down, nobody could renew."""
    queue.put(boots(1))
    claim(queue, ONE)
    let_time_pass(server, ONE)
    assert queue.claim(TWO, "run", "boot-model") is None


@pytest.mark.usefixtures("started_long_ago")
def test_a_subject_whose_task_ended_workers_on_two_hosts_is_quarantined(server: PostgresServer, queue: Queue) -> None:
    queue.put([*boots(2, subject="bad"), *(task.model_copy(update={"key": "other"}) for task in boots(1))])
    for victim in (ONE, TWO):
        queue.register(victim)
        assert claim(queue, victim, preferred="k0").task.key == "k0"
        let_time_pass(server, victim)
    assert claim(queue, THREE, preferred="k0").task.key == "other", "no third host is ended, and good ones go on"
    assert queue.claim(THREE, "run", "boot-model") is None
    reason = "quarantined: 2 workers ended while they carried it out, on one, two"
    ended = queue.ended([("k0", 0), ("k1", 0)])
    assert [(one.result, one.reason) for one in ended] == [(None, reason)] * 2
    assert queue.quarantined() == {"bad": reason}
    queue.put(boots(1, subject="bad", attempt=1))
    assert [one.reason for one in queue.ended([("k0", 1)])] == [reason]
    assert queue.release("bad") == 3
    assert claim(queue, THREE, preferred="k0").task.key == "k0"


@pytest.mark.usefixtures("started_long_ago")
def test_a_subject_with_a_success_in_between_is_not_quarantined(server: PostgresServer, queue: Queue) -> None:
    queue.put(boots(2))
    claim(queue, ONE, preferred="k0")
    let_time_pass(server, ONE)
    again = claim(queue, TWO, preferred="k0")
    assert queue.commit(THREE, claim(queue, THREE, preferred="k1"), {})
    let_time_pass(server, TWO)
    assert claim(queue, THREE, preferred="k0").fence > again.fence


@pytest.mark.usefixtures("started_long_ago")
def test_a_worker_that_lives_is_not_blamed_for_a_lease_that_it_lost(server: PostgresServer, queue: Queue) -> None:
    queue.put(boots(1))
    for by in (ONE, TWO, THREE, ONE):
        queue.register(by)
        claim(queue, by)
        execute(server, "UPDATE kdyno_fleet_task SET until = now() - interval '2 hours'")
    assert queue.quarantined() == {}


def test_a_worker_that_leaves_gives_its_tasks_back(queue: Queue) -> None:
    queue.register(ONE)
    queue.put(boots(2))
    claim(queue, ONE)
    assert [one.name for one in queue.workers()] == ["one"]
    queue.leave(ONE)
    assert queue.workers() == []
    assert waiting(queue) == ["k0", "k1"]


def test_a_refused_task_is_for_others(queue: Queue) -> None:
    queue.put(boots(1))
    queue.refuse(ONE, claim(queue, ONE), "QEMU 9 instead of 7")
    assert queue.claim(ONE, "run", "boot-model") is None
    assert queue.refusals("run") == {("k0", 0): {"one": "QEMU 9 instead of 7"}}
    [task] = queue.standing("run", "boot-model")[0]
    assert (task.is_for(ONE), task.is_for(TWO)) == (False, True)
    assert queue.commit(TWO, claim(queue, TWO), {})


def registered(queue: Queue, *workers: Worker) -> None:
    for one in workers:
        queue.register(one)


def wall_hosts(queue: Queue, workers: Sequence[Worker]) -> dict[str, set[str]]:
    """Carry out all boots of the wall lane by turns; return the hosts of each block."""
    hosts: dict[str, set[str]] = {}
    idle = 0
    while idle < len(workers):
        for by in workers:
            claimed = queue.claim(by, "run", "boot-wall")
            if claimed is None:
                idle += 1
                continue
            idle = 0
            assert claimed.task.block
            hosts.setdefault(claimed.task.block, set()).add(by.host)
            assert queue.commit(by, claimed, {})
    return hosts


def test_a_block_of_the_wall_lane_stays_on_one_host(queue: Queue) -> None:
    queue.put(boots(12, "boot-wall", per_block=3))
    workers = [ONE, TWO, worker("two-again", "two")]
    registered(queue, *workers)
    hosts = wall_hosts(queue, workers)
    assert all(len(names) == 1 for names in hosts.values())
    assert set().union(*hosts.values()) == {"one", "two"}


def test_a_host_has_one_wall_slot(queue: Queue) -> None:
    registered(queue, ONE, TWO)
    queue.put(boots(4, "boot-wall", per_block=2))
    claim(queue, ONE, "boot-wall")
    assert queue.claim(ONE, "run", "boot-wall") is None
    assert queue.claim(worker("other", host="one"), "run", "boot-wall") is None
    assert claim(queue, TWO, "boot-wall").task.block == "b1"


def test_what_is_left_of_a_block_waits_for_its_host(queue: Queue) -> None:
    registered(queue, ONE, TWO)
    queue.put(boots(3, "boot-wall", per_block=2))
    queue.commit(ONE, claim(queue, ONE, "boot-wall"), {})
    begun, other = queue.standing("run", "boot-wall")[0]
    assert (begun.key, begun.is_for(ONE), begun.is_for(TWO)) == ("k1", True, False)
    assert (other.key, other.is_for(ONE), other.is_for(TWO)) == ("k2", True, True)


def test_a_block_is_returned_when_all_of_it_has_ended(queue: Queue) -> None:
    queue.put(boots(2, "boot-wall", per_block=2))
    names = [("k0", 0), ("k1", 0)]
    queue.commit(ONE, claim(queue, ONE, "boot-wall"), {})
    assert queue.ended(names) == []
    queue.commit(ONE, claim(queue, ONE, "boot-wall"), {})
    assert [one.host for one in queue.ended(names)] == ["one", "one"]


@pytest.mark.usefixtures("started_long_ago")
def test_a_block_whose_host_is_gone_is_carried_out_whole_by_another(server: PostgresServer, queue: Queue) -> None:
    registered(queue, ONE, TWO)
    queue.put(boots(3, "boot-wall", per_block=3))
    queue.commit(ONE, claim(queue, ONE, "boot-wall"), {"by": "one"})
    begun = claim(queue, ONE, "boot-wall")
    assert queue.claim(TWO, "run", "boot-wall") is None
    let_time_pass(server, ONE)
    hosts = wall_hosts(queue, [TWO])
    assert hosts == {"b0": {"two"}}
    assert {one.host for one in queue.ended([("k0", 0), ("k1", 0), ("k2", 0)])} == {"two"}
    assert not queue.commit(ONE, begun, {"by": "one"})


@pytest.mark.usefixtures("started_long_ago")
def test_a_block_that_a_client_has_is_not_begun_again_elsewhere(server: PostgresServer, queue: Queue) -> None:
    queue.register(ONE)
    queue.put(boots(1, "boot-wall", per_block=1))
    queue.commit(ONE, claim(queue, ONE, "boot-wall"), {})
    assert len(queue.ended([("k0", 0)])) == 1
    queue.put(boots(1, "boot-wall", per_block=1, attempt=1))
    let_time_pass(server, ONE)
    assert queue.claim(TWO, "run", "boot-wall") is None
    queue.register(ONE)
    assert claim(queue, ONE, "boot-wall").task.attempt == 1


def test_a_run_that_is_withdrawn_leaves_only_what_has_begun(queue: Queue) -> None:
    queue.put(boots(3))
    begun = claim(queue, ONE)
    assert queue.withdraw("run") == 2
    assert queue.commit(ONE, begun, {})
    queue.forget("run")
    assert queue.ended([("k0", 0)]) == []


def test_a_listener_hears_of_a_result(queue: Queue) -> None:
    queue.put(boots(1))
    claimed = claim(queue, ONE)
    with queue.listening() as wait, ThreadPoolExecutor(1) as threads:
        wait(0)  # listens from here on
        hearing = threads.submit(wait, 60)
        queue.commit(ONE, claimed, {})
        hearing.result(timeout=30)
