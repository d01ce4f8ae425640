"""Tickets: which ones count as under way, and when new ones are sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kdyno.fleet.carriage import Carriage
from kdyno.fleet.carried_boots import CarriedBoots
from kdyno.fleet.errors import NobodyLeft
from kdyno.fleet.fleet_file import Fleet, FleetFile
from kdyno.fleet.queue.model import WaitingTask, Worker
from tests.unit.fleet.test_queue import worker

LEASE = 30.0
KIND = "boot-model"


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
    monkeypatch.setattr("kdyno.fleet.carried_boots.time.monotonic", lambda: clock[0])
    return clock


@pytest.fixture
def queue() -> FakeQueue:
    return FakeQueue([worker("one"), worker("two")], waiting=3)


@pytest.fixture
def boots(dask: FakeDask, queue: FakeQueue, now: list[float]) -> CarriedBoots:
    assert now == [0.0]
    file = FleetFile(id="0" * 16, scheduler="tls://h:1", database="postgresql://h/d", blobs="b", lease_seconds=LEASE)
    carriage = Carriage(Fleet(Path("/nowhere"), file))
    carriage._client = cast("Any", dask)
    connection = SimpleNamespace(queue=queue, carriage=carriage, lock=Lock())
    store = SimpleNamespace(count_attempts=lambda _: {})
    to_carry = SimpleNamespace(run="run", boots={}, store=store, about=SimpleNamespace(facts={}))
    machine = SimpleNamespace(crew=SimpleNamespace(kind=KIND, workers=tuple(queue.alive)), needs=None)
    return CarriedBoots(cast("Any", connection), cast("Any", to_carry), cast("Any", machine))


def test_each_waiting_task_has_one_ticket_for_all_that_are_alive(boots: CarriedBoots, dask: FakeDask) -> None:
    boots._send_tickets()
    boots._send_tickets()
    assert dask.sent == [["one", "two"]] * 3
    dask.futures[0].is_done = True
    boots._send_tickets()
    assert len(dask.sent) == 4


def test_tickets_for_workers_that_have_died_are_lost_though_others_have_their_names(
    boots: CarriedBoots, dask: FakeDask, queue: FakeQueue
) -> None:
    boots._send_tickets()
    queue.alive = [Worker("a later start", "one", "one", queue.alive[0].offer, "kdyno 0")]
    boots._send_tickets()
    assert dask.sent == [["one", "two"]] * 3 + [["one"]] * 3
    boots._send_tickets()
    assert len(dask.sent) == 6


def test_tickets_that_nobody_takes_for_a_lease_are_sent_again(
    boots: CarriedBoots, dask: FakeDask, queue: FakeQueue, now: list[float]
) -> None:
    boots._send_tickets()
    now[0] = LEASE
    boots._send_tickets()
    assert len(dask.sent) == 3
    now[0] = LEASE + 1
    boots._send_tickets()
    assert len(dask.sent) == 6
    queue.waiting, queue.leased = 2, 1
    now[0] = 3 * LEASE
    boots._send_tickets()
    assert len(dask.sent) == 6, "one of them was taken"


def test_a_run_without_any_of_its_workers_says_so(boots: CarriedBoots, queue: FakeQueue) -> None:
    queue.alive = [worker("three")]
    with pytest.raises(NobodyLeft, match="one, two"):
        boots._send_tickets()
