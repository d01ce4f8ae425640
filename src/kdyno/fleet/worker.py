"""A worker: it claims tasks, keeps their leases, and commits their results. What brings it tickets is in serve.py."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import BoundedSemaphore, Event, Lock, Thread

from pydantic import ValidationError

from kdyno.base.errors import KdynoError
from kdyno.base.mistakes import first_fault
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.fleet.blobs import Blobs
from kdyno.fleet.carry_boot import CannotCarryOut, Machines, carry_boot
from kdyno.fleet.carry_build import BuildCancelled, carry_build
from kdyno.fleet.errors import QueueFailed
from kdyno.fleet.messages import BootResult, BootSpec, BuildResult, BuildSpec, MachineAnswer, MachineQuestion, Ticket
from kdyno.fleet.package_digest import this_kdyno
from kdyno.fleet.queue.model import TaskClaim, Worker
from kdyno.fleet.queue.queue import Queue

RENEWALS = 4
"""The times that a lease is renewed within its span."""
PATIENCE_SECONDS = 600.0
"""The seconds for which a finished task waits for a database that doesn't answer."""
PAUSE_SECONDS = 0.5
IDLE_SECONDS = 60.0
"""The seconds for which a worker keeps a box between two boots."""


class Attendant:
    """What a worker does with tickets. Safe for threads: each ticket is one."""

    def __init__(self, worker: Worker, queue: Queue, blobs: Blobs, state: State, talk: Talk) -> None:
        self.worker, self._queue, self._blobs, self._state, self._talk = worker, queue, blobs, state, talk
        self._machines = Machines(state, talk)
        self._slots = {kind: BoundedSemaphore(count) for kind, count in worker.offer.slots.items() if count}
        self._held: dict[tuple[str, int, int], tuple[TaskClaim, Event]] = {}
        self._lock = Lock()
        self._stopping = Event()
        self._renewing = Thread(target=self._renew, daemon=True)

    def start(self) -> None:
        """Put the worker on record, and begin to renew its leases. Raises QueueFailed."""
        self._queue.register(self.worker)
        self._renewing.start()

    def stop(self) -> None:
        """End what is under way, and give it back."""
        self._stopping.set()
        with self._lock:
            for _, cancelled in self._held.values():
                cancelled.set()
        with suppress(KdynoError):
            self._queue.leave(self.worker)

    def let_boxes_go(self) -> None:
        """Give all boxes back that no boot uses."""
        for call in self._machines.let_boxes_go(0):
            call.wait()

    def wait(self, seconds: float) -> None:
        """Wait until nothing is under way, at most so many seconds."""
        deadline = time.monotonic() + seconds
        while self._held and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS / 10)

    def answer(self, text: str) -> str:
        """Return the answer to a question, both as JSON."""
        question = MachineQuestion.model_validate_json(text)
        if question.package != this_kdyno():
            return MachineAnswer(refusal=_other_kdyno(question.package)).model_dump_json()
        return self._machines.answer(question).model_dump_json()

    def carry_out(self, text: str) -> str:
        """Take a ticket, as JSON: claim a task of its run, carry it out, commit. Return how that went, for people."""
        ticket = Ticket.model_validate_json(text)
        if ticket.package != this_kdyno():
            return _other_kdyno(ticket.package)
        slot = self._slots.get(ticket.kind)
        if slot is None or self._stopping.is_set():
            return "no slot"
        with slot:
            try:
                claim = self._queue.claim(self.worker, ticket.run, ticket.kind, ticket.preferred)
            except QueueFailed as error:
                return str(error)
            if claim is None:
                return "nothing to claim"
            with self._holding(claim) as cancelled:
                return self._carry(claim, cancelled)

    def _carry(self, claim: TaskClaim, cancelled: Event) -> str:
        try:
            result = self._result(claim, cancelled)
        except BuildCancelled:
            if not self._stopping.is_set():
                return self._say_taken_over(claim)
            self._give_back(claim)
            return "stopped"
        except CannotCarryOut as error:
            return self._refuse(claim, str(error))
        except ValidationError as error:
            return self._refuse(claim, f"its specification can't be read: {first_fault(error)}")
        except KdynoError as error:  # this host's disk, or the blob store: another host may be better off
            return self._refuse(claim, str(error))
        if self._stopping.is_set():
            self._give_back(claim)
            return "stopped"
        if cancelled.is_set():
            return self._say_taken_over(claim)
        return self._commit(claim, result.model_dump(mode="json"))

    def _result(self, claim: TaskClaim, cancelled: Event) -> BootResult | BuildResult:
        """Carry a task out. Raises ValidationError, and what carrying it out raises."""
        if claim.task.kind == "build":
            self._talk.say(f"{claim.task.key[:12]}: building")
            jobs = max(1, (os.cpu_count() or 1) // self.worker.offer.slots["build"])
            build_spec = BuildSpec.model_validate(claim.task.spec)
            return carry_build(build_spec, self._state, self._blobs, jobs, cancelled)
        boot_spec = BootSpec.model_validate(claim.task.spec)
        return carry_boot(boot_spec, self._machines, self._state, self._blobs, cancelled)

    def _commit(self, claim: TaskClaim, result: dict[str, object]) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                if self._queue.commit(self.worker, claim, result):
                    return "done"
                return self._say_taken_over(claim)
            except QueueFailed as error:
                if self._stopping.is_set() or time.monotonic() > deadline:
                    return str(error)
            time.sleep(PAUSE_SECONDS)

    def _say_taken_over(self, claim: TaskClaim) -> str:
        reason = "another worker has taken this over; its result counts"
        self._talk.say(f"{claim.task.key[:12]}: {reason}")
        return reason

    def _refuse(self, claim: TaskClaim, reason: str) -> str:
        self._talk.say(f"{claim.task.key[:12]}: refused: {reason}")
        with suppress(QueueFailed):  # then the lease runs out
            self._queue.refuse(self.worker, claim, reason)
        return f"refused: {reason}"

    def _give_back(self, claim: TaskClaim) -> None:
        with suppress(QueueFailed):
            self._queue.give_back(claim)

    @contextmanager
    def _holding(self, claim: TaskClaim) -> Iterator[Event]:
        """Renew the lease while the body runs; yield an event that is set when the task is another worker's."""
        cancelled = Event()
        with self._lock:
            self._held[claim.token] = claim, cancelled
            if self._stopping.is_set():
                cancelled.set()
        try:
            yield cancelled
        finally:
            with self._lock:
                del self._held[claim.token]

    def _renew(self) -> None:
        while not self._stopping.wait(self._queue.lease_seconds / RENEWALS):
            with self._lock:
                held = list(self._held.values())
            try:
                kept = self._queue.renew(self.worker, [claim for claim, _ in held])
            except QueueFailed:
                continue  # nobody else can take a lease over either
            with self._lock:
                for claim, cancelled in held:
                    if claim.task.name not in kept and claim.token in self._held:
                        cancelled.set()
            self._machines.let_boxes_go(IDLE_SECONDS)


def _other_kdyno(theirs: str) -> str:
    return f"refused: the client has another kdyno ({theirs}) than this worker ({this_kdyno()})"
