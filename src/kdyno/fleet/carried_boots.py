"""The boots of a run on a fleet: put into the queue, asked for by tickets, and collected.

A thread of its own looks at the queue, and sends tickets for what nobody carries out: after the death of a worker, of
the scheduler or of the database it goes on where it was. The queue is the truth; tickets can be lost, or be too many.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from pathlib import Path
from threading import Condition, Event, Lock, Thread
from types import TracebackType
from typing import Self

from kdyno.base.errors import KdynoError
from kdyno.base.frozen import digest
from kdyno.boot.base import BootEnd
from kdyno.fleet.connection import FleetConnection
from kdyno.fleet.errors import NobodyLeft, NobodyOffers, QueueFailed, SchedulerUnreachable
from kdyno.fleet.machine import FleetMachine
from kdyno.fleet.messages import BootResult, BootSpec
from kdyno.fleet.queue.model import EndedTask, Task, TaskName, Worker
from kdyno.kernel.image import Image
from kdyno.kernel.images import RECORD as IMAGE_RECORD
from kdyno.measure.guest.agent import expected_records
from kdyno.measure.guest.counters import COUNTERS
from kdyno.measure.guest.pmu import RECORD
from kdyno.measure.guest.stream import AgentReport, read_stream
from kdyno.runs.carrier import BootsToCarry, BootToCarry
from kdyno.runs.one_boot import BootRequest

LOOK_SECONDS = 0.5
"""The time between looks at the queue, if nobody says that something has ended."""
AGAIN_SECONDS = 20.0
MOST_IN_FLIGHT = 400
"""Each boot in flight is a thread of the client."""


class CarriedBoots:
    """Boots that a fleet carries out; see kdyno.runs.carrier.BootCarrier."""

    def __init__(self, connection: FleetConnection, boots: BootsToCarry, machine: FleetMachine) -> None:
        self._connection, self._to_carry = connection, boots
        self._crew, self._needs = machine.crew, machine.needs
        self._facts = digest(boots.about.facts)
        self._attempts: Counter[str] = boots.store.count_attempts(boots.boots)
        self._first = dict(self._attempts)
        self._of_block: dict[int, dict[str, BootToCarry]] = defaultdict(dict)
        if self._crew.kind == "boot-wall":
            for key, boot in boots.boots.items():
                self._of_block[boot.planned.block][key] = boot
        self._image_records: dict[str, str] = {}
        self._ended: dict[TaskName, EndedTask | KdynoError] = {}
        self._waiting: set[TaskName] = set()
        self._news, self._uploading = Condition(), Lock()
        self._stopping = Event()
        self._thread = Thread(target=self._attend, daemon=True)
        self._trouble = ""
        self._last_sign = time.monotonic()
        """When the last boot was under way, or none was left."""

    @property
    def in_flight(self) -> int:
        """Return the number of boots that keep the workers busy: in the wall lane whole blocks."""
        boots = 2 * self._crew.slots + 2
        if self._crew.kind == "boot-wall":
            variants = self._to_carry.variants
            boots = max(1, min(2 * self._crew.slots, MOST_IN_FLIGHT // variants)) * variants
        return min(boots, MOST_IN_FLIGHT)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        try:
            self._connection.queue.withdraw(self._to_carry.run)
            if error is None:
                self._connection.queue.forget(self._to_carry.run)
        except QueueFailed as failed:
            self._to_carry.talk.say(f"note: {failed}; the run's tasks stay in the queue")

    def boot(self, key: str, boot: BootToCarry, directory: Path, cancelled: Event) -> BootEnd:
        """Put a boot into the queue, unless it is there; wait for its end, and fetch its files."""
        with self._news:
            attempt = self._attempts[key]
            self._attempts[key] += 1
        name = (key, attempt)
        is_first = attempt == self._first.get(key, 0)
        together = self._of_block.get(boot.planned.block, {}) if is_first else {}
        tasks = [self._task(other, self._first.get(other, 0), one) for other, one in together.items()]
        ended = self._wait(name, tasks or [self._task(key, attempt, boot)], cancelled)
        if isinstance(ended, KdynoError):
            raise ended
        if ended is None:
            return _lost("interrupted", directory)
        if ended.result is None:
            return _lost(ended.reason, directory)
        return self._end(ended, boot.request, directory)

    def _wait(self, name: TaskName, tasks: list[Task], cancelled: Event) -> EndedTask | KdynoError | None:
        """Put tasks, and wait for the end of one of them; None if that was cancelled."""
        with self._news:
            self._waiting.add(name)
        while not cancelled.is_set():
            self._put(tasks)  # again now and then: another client may have withdrawn the task
            deadline = time.monotonic() + AGAIN_SECONDS
            with self._news:
                while name not in self._ended and not cancelled.is_set() and time.monotonic() < deadline:
                    self._news.wait(LOOK_SECONDS)
                if name in self._ended:
                    break
        with self._news:
            self._waiting.discard(name)
            return self._ended.pop(name, None)

    def _put(self, tasks: list[Task]) -> None:
        while True:
            try:
                self._connection.queue.put(tasks)
                return
            except QueueFailed as error:
                self._say_trouble(error)
                if self._stopping.wait(LOOK_SECONDS):
                    return

    def _task(self, key: str, attempt: int, boot: BootToCarry) -> Task:
        planned, request = boot.planned, boot.request
        spec = BootSpec(
            machine=self._to_carry.settings,
            needs=self._needs,
            facts=self._facts,
            image=self._uploaded(request.image) if request.image else None,
            name=request.name,
            cmdline=request.cmdline,
            job=request.job,
            seed=request.seed,
            variant=request.variant,
            block=request.block,
        )
        is_wall = self._crew.kind == "boot-wall"
        return Task(
            key=key,
            attempt=attempt,
            run=self._to_carry.run,
            kind=self._crew.kind,
            subject=request.image.record.key if request.image else f"{self._to_carry.run}/{planned.variant}",
            block=f"{self._to_carry.run}/{planned.block}" if is_wall else None,
            position=planned.position,
            spec=spec.model_dump(mode="json"),
        )

    def _uploaded(self, image: Image) -> str:
        """Bring an image into the blob store, once; return the digest of its record."""
        key = image.record.key
        with self._uploading:
            if key not in self._image_records:
                for name, sha256 in image.record.files.items():
                    if not self._connection.blobs.has(sha256):
                        self._connection.blobs.put(image.directory / name)
                self._image_records[key] = self._connection.blobs.put(image.directory / IMAGE_RECORD)
            return self._image_records[key]

    def _end(self, ended: EndedTask, request: BootRequest, directory: Path) -> BootEnd:
        result = BootResult.model_validate(ended.result)
        console = self._fetched(result.console, directory / "console.log")
        stream = self._fetched(result.stream, directory / "stream.jsonl")
        report = read_stream(stream, expected_records(request.order(directory).job))
        return BootEnd(
            status=result.status,
            reason=result.reason,
            seconds=result.seconds,
            ready_seconds=result.ready_seconds,
            command=result.command,
            console=console,
            stream=stream,
            report=report,
            pmu=self._fetched(result.pmu, directory / RECORD) if result.pmu else None,
            counters=self._fetched(result.counters, directory / COUNTERS) if result.counters else None,
            conditions=result.conditions,
            advice=result.advice,
            disturbance=result.disturbance,
            started=result.started,
            host=ended.host,
        )

    def _fetched(self, sha256: str | None, path: Path) -> Path:
        if sha256:
            self._connection.blobs.get(sha256, path)
        return path

    # The thread that looks after the queue.

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
        kind = self._crew.kind
        claimable, leased = self._connection.queue.standing(self._to_carry.run, kind)
        alive = self._require_somebody() if claimable else []
        with self._connection.lock:
            carriage = self._connection.carriage
            if leased or not claimable:
                self._last_sign = time.monotonic()
            elif time.monotonic() - self._last_sign > self._connection.queue.lease_seconds:
                carriage.void(kind)  # nobody has taken any of them for so long
                self._last_sign = time.monotonic()
            missing = len(claimable) + leased - carriage.outstanding(kind, alive)
            if missing > 0 and claimable:
                carriage.connect()
                for task in claimable[:missing]:
                    # To those who may claim it: Dask would send each to the same worker, which finds nothing.
                    if workers := [worker for worker in alive if task.is_for(worker)]:
                        carriage.send(self._to_carry.run, kind, task.key, workers)

    def _require_somebody(self) -> list[Worker]:
        """Return the workers of the crew that are alive, as they were started last. Fail a boot that all of the crew
        refused. Raises NobodyLeft.
        """
        names = {worker.name for worker in self._crew.workers}
        alive = [worker for worker in self._connection.queue.workers() if worker.name in names]
        if not alive:
            raise NobodyLeft(names=", ".join(sorted(names)))
        for name, reasons in self._connection.queue.refusals(self._to_carry.run).items():
            if names <= set(reasons):
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
            self._to_carry.talk.warn(f"{error}: waiting for it")


def _lost(reason: str, directory: Path) -> BootEnd:
    """Return the end of a boot that left no files."""
    return BootEnd("lost", reason, 0.0, None, (), directory / "console.log", directory / "stream.jsonl", AgentReport())
