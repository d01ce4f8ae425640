"""Tickets: which ones count as under way, and when new ones are sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kdyno.base.talk import Talk
from kdyno.fleet.carriage import Carriage
from kdyno.fleet.carried_tasks import CarriedTasks
from kdyno.fleet.errors import NobodyLeft
from kdyno.fleet.fleet_file import Fleet, FleetFile
from kdyno.fleet.queue.model import Kind, WaitingTask, Worker
from tests.unit.fleet.test_queue import worker

LEASE = 30.0
KIND: Kind = "boot-model"


@dataclass
class FakeFuture:
    is_done: bool = False

    def done(self) -> bool:
        return self.is_done


@dataclass
class FakeDask:
    """Takes tickets, and keeps the names of those that each is for."""

    sent: list[list[str]] = field(default_factory=list)
    futures: list[FakeFuture] = field(default_factory=list)
    status: str = "running"

    def submit(self, *_: object, workers: list[str], **__: object) -> FakeFuture:
        self.sent.append(workers)
        self.futures.append(FakeFuture())
        return self.futures[-1]


@dataclass
class FakeQueue:
    alive: list[Worker]
    waiting: int
    leased: int = 0
    lease_seconds: float = LEASE

    def standing(self, *_: object) -> tuple[list[WaitingTask], int]:
        return [WaitingTask(f"k{number}", None, frozenset()) for number in range(self.waiting)], self.leased

    def workers(self) -> list[Worker]:
        return self.alive

    def refusals(self, _: str) -> dict[Any, Any]:
        return {}


@pytest.fixture
def dask(monkeypatch: pytest.MonkeyPatch) -> FakeDask:
    monkeypatch.setattr("kdyno.fleet.carriage.this_kdyno", lambda: "kdyno 0")
    return FakeDask()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock, which the test sets."""
    clock = [0.0]
    monkeypatch.setattr("kdyno.fleet.carried_tasks.time.monotonic", lambda: clock[0])
    return clock


@pytest.fixture
def queue() -> FakeQueue:
    return FakeQueue([worker("one"), worker("two")], waiting=3)


@pytest.fixture
def tasks(dask: FakeDask, queue: FakeQueue, now: list[float]) -> CarriedTasks:
    assert now == [0.0]
    file = FleetFile(id="0" * 16, scheduler="tls://h:1", database="postgresql://h/d", blobs="b", lease_seconds=LEASE)
    carriage = Carriage(Fleet(Path("/nowhere"), file))
    carriage._client = cast("Any", dask)
    connection = SimpleNamespace(queue=queue, carriage=carriage, lock=Lock())
    return CarriedTasks(cast("Any", connection), "run", KIND, queue.alive, Talk(quiet=True))


def test_each_waiting_task_has_one_ticket_for_all_that_are_alive(tasks: CarriedTasks, dask: FakeDask) -> None:
    tasks._send_tickets()
    tasks._send_tickets()
    assert dask.sent == [["one", "two"]] * 3
    dask.futures[0].is_done = True
    tasks._send_tickets()
    assert len(dask.sent) == 4


def test_tickets_for_workers_that_have_died_are_lost_though_others_have_their_names(
    tasks: CarriedTasks, dask: FakeDask, queue: FakeQueue
) -> None:
    tasks._send_tickets()
    queue.alive = [Worker("a later start", "one", "one", queue.alive[0].offer, "kdyno 0")]
    tasks._send_tickets()
    assert dask.sent == [["one", "two"]] * 3 + [["one"]] * 3
    tasks._send_tickets()
    assert len(dask.sent) == 6


def test_tickets_that_nobody_takes_for_a_lease_are_sent_again(
    tasks: CarriedTasks, dask: FakeDask, queue: FakeQueue, now: list[float]
) -> None:
    tasks._send_tickets()
    now[0] = LEASE
    tasks._send_tickets()
    assert len(dask.sent) == 3
    now[0] = LEASE + 1
    tasks._send_tickets()
    assert len(dask.sent) == 6
    queue.waiting, queue.leased = 2, 1
    now[0] = 3 * LEASE
    tasks._send_tickets()
    assert len(dask.sent) == 6, "one of them was taken"


def test_a_run_without_any_of_its_workers_says_so(tasks: CarriedTasks, queue: FakeQueue) -> None:
    queue.alive = [worker("three")]
    with pytest.raises(NobodyLeft, match="one, two"):
        tasks._send_tickets()


def test_a_worker_that_is_started_again_after_it_was_asked_refuses(now: list[float]) -> None:
    class Silent:
        def result(self, timeout: float) -> str:
            now[0] += timeout
            raise TimeoutError

    class Restarting(FakeDask):
        def submit(self, *_: object, workers: list[str], **__: object) -> Any:
            assert workers == ["one"]
            return Silent()

        def scheduler_info(self, **_: object) -> dict[str, Any]:
            return {"workers": {f"tls://h:{int(now[0] > 2)}": {"name": "one"}}}

    file = FleetFile(id="0" * 16, scheduler="tls://h:1", database="postgresql://h/d", blobs="b", lease_seconds=LEASE)
    carriage = Carriage(Fleet(Path("/nowhere"), file))
    carriage._client = cast("Any", Restarting())
    answers = carriage.ask(cast("Any", SimpleNamespace(model_dump_json=lambda: "{}")), ["one", "gone"])
    assert answers["gone"].refusal == "it isn't connected any more"
    assert answers["one"].refusal == "it doesn't answer: it was started again"
    assert now[0] == 3, "it looks each second"
