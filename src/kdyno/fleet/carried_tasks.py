"""Tasks of a client on a fleet: put into the queue, asked for by tickets, and waited for.

A thread of its own looks at the queue, and sends tickets for what nobody carries out: after the death of a worker, of
the scheduler or of the database it goes on where it was. The queue is the truth; tickets can be lost, or be too many.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Condition, Event, Thread
from types import TracebackType
from typing import Self

from kdyno.base.errors import KdynoError
from kdyno.base.talk import Talk
from kdyno.fleet.connection import FleetConnection
from kdyno.fleet.errors import NobodyLeft, NobodyOffers, QueueFailed, SchedulerUnreachable
from kdyno.fleet.queue.model import EndedTask, Kind, Task, TaskName, Worker

LOOK_SECONDS = 0.5
"""The time between looks at the queue, if nobody says that something has ended."""
AGAIN_SECONDS = 20.0


class CarriedTasks:
    """The tasks of one run and one kind, for these workers. Many threads may wait for tasks at a time."""

    def __init__(
        self, connection: FleetConnection, run: str, kind: Kind, workers: Sequence[Worker], talk: Talk
    ) -> None:
        self._connection, self._run, self._kind, self._talk = connection, run, kind, talk
        self._names = {worker.name for worker in workers}
        self._ended: dict[TaskName, EndedTask | KdynoError] = {}
        self._waiting: set[TaskName] = set()
        self._news = Condition()
        self._stopping = Event()
        self._thread = Thread(target=self._attend, daemon=True)
        self._trouble = ""
        self._last_sign = time.monotonic()
        """When the last task was under way, or none was left."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        try:
            self._connection.queue.withdraw(self._run)
            if error is None:
                self._connection.queue.forget(self._run)
        except QueueFailed as failed:
            self._talk.say(f"note: {failed}; the run's tasks stay in the queue")

    def carry(self, name: TaskName, tasks: Sequence[Task], cancelled: Event) -> EndedTask | None:
        """Put tasks, and wait for the end of the one of this name; None if that was cancelled.

        Raises NobodyOffers for a task that all workers refused.
        """
        with self._news:
            self._waiting.add(name)
        while not cancelled.is_set():
            self.put(tasks)  # again now and then: another client may have withdrawn the task
            deadline = time.monotonic() + AGAIN_SECONDS
            with self._news:
                while name not in self._ended and not cancelled.is_set() and time.monotonic() < deadline:
                    self._news.wait(LOOK_SECONDS)
                if name in self._ended:
                    break
        with self._news:
            self._waiting.discard(name)
            ended = self._ended.pop(name, None)
        if isinstance(ended, KdynoError):
            raise ended
        return ended

    def put(self, tasks: Sequence[Task]) -> None:
        """Put tasks into the queue, as soon as it can be reached."""
        while True:
            try:
                self._connection.queue.put(tasks)
                return
            except QueueFailed as error:
                self._say_trouble(error)
                if self._stopping.wait(LOOK_SECONDS):
                    return

    def _attend(self) -> None:
        with self._connection.queue.listening() as wait:
            while not self._stopping.is_set():
                try:
                    self._collect()
                    self._send_tickets()
                    self._trouble = ""
                except (QueueFailed, SchedulerUnreachable, NobodyLeft) as error:
                    self._say_trouble(error)
                except KdynoError as error:
                    self._fail(error)
                except Exception as error:  # a thread that ends silently would leave the run waiting
                    self._fail(SchedulerUnreachable(address="the fleet", why=f"{type(error).__name__}: {error}"))
                wait(LOOK_SECONDS)

    def _collect(self) -> None:
        with self._news:
            names = list(self._waiting)
        if not names:
            return
        ended = self._connection.queue.ended(names)
        if ended:
            with self._news:
                self._ended |= {(one.key, one.attempt): one for one in ended}
                self._news.notify_all()

    def _send_tickets(self) -> None:
        claimable, leased = self._connection.queue.standing(self._run, self._kind)
        alive = self._require_somebody() if claimable else []
        with self._connection.lock:
            carriage = self._connection.carriage
            if leased or not claimable:
                self._last_sign = time.monotonic()
            elif time.monotonic() - self._last_sign > self._connection.queue.lease_seconds:
                carriage.void(self._kind)  # nobody has taken any of them for so long
                self._last_sign = time.monotonic()
            missing = len(claimable) + leased - carriage.outstanding(self._kind, alive)
            if missing > 0 and claimable:
                carriage.connect()
                for task in claimable[:missing]:
                    # To those who may claim it: Dask would send each to the same worker, which finds nothing.
                    if workers := [worker for worker in alive if task.is_for(worker)]:
                        carriage.send(self._run, self._kind, task.key, workers)

    def _require_somebody(self) -> list[Worker]:
        """Return the workers that are alive, as they were started last. Fail a task that all of them refused. Raises
        NobodyLeft.
        """
        alive = [worker for worker in self._connection.queue.workers() if worker.name in self._names]
        if not alive:
            raise NobodyLeft(names=", ".join(sorted(self._names)))
        for name, reasons in self._connection.queue.refusals(self._run).items():
            if self._names <= set(reasons):
                told = "; ".join(f"{worker}: {reason}" for worker, reason in sorted(reasons.items()))
                with self._news:
                    self._ended[name] = NobodyOffers(missing=told)
                    self._news.notify_all()
        return alive

    def _fail(self, error: KdynoError) -> None:
        with self._news:
            self._ended |= dict.fromkeys(self._waiting, error)
            self._news.notify_all()

    def _say_trouble(self, error: KdynoError) -> None:
        if self._trouble != type(error).__name__:
            self._trouble = type(error).__name__
            self._talk.warn(f"{error}: waiting for it")
