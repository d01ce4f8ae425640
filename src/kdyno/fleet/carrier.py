"""Carries a run out on a fleet: the machine of workers that are alike, and boots by tasks of the queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from types import TracebackType
from typing import Self

from kdyno.base.talk import Talk
from kdyno.boot.base import MachineBackend, MachineSettings
from kdyno.fleet.carriage import Carriage
from kdyno.fleet.carried_boots import CarriedBoots
from kdyno.fleet.errors import NobodyOffers, OtherKdyno
from kdyno.fleet.fleet_file import Fleet
from kdyno.fleet.machine import FleetMachine
from kdyno.fleet.messages import MachineAnswer, MachineQuestion
from kdyno.fleet.package_digest import this_kdyno
from kdyno.fleet.queue.model import Worker
from kdyno.runs.carrier import BootCarrier, BootToCarry
from kdyno.runs.prepare import Prepared
from kdyno.runs.session import Session


class FleetCarrier:
    """A fleet that carries runs out. As a context manager, it disconnects at the end.

    Raises SchedulerUnreachable, OtherKdyno, NobodyOffers, and what opening the queue raises.
    """

    def __init__(self, fleet: Fleet, talk: Talk) -> None:
        self._fleet, self._talk = fleet, talk
        self.queue, self.blobs = fleet.queue(), fleet.blobs()
        self.carriage = Carriage(fleet)
        self.lock = Lock()
        """Held while `carriage` is in use."""

    def __enter__(self) -> Self:
        try:
            self.queue.require_current(self._fleet.file.id)
            self.carriage.connect()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        self.carriage.close()
        self.queue.close()

    def open_machine(self, settings: MachineSettings) -> MachineBackend:
        """Return the machine of the workers that are connected now."""
        return FleetMachine(settings, self.workers(), self.ask)

    def provide_images(self, prepared: Prepared, session: Session) -> None:
        """Nothing is built elsewhere."""

    def workers(self) -> list[Worker]:
        """Return the connected workers that have this kdyno. Raises NobodyOffers and OtherKdyno."""
        with self.lock:
            connected = set(self.carriage.workers())
        workers = [worker for worker in self.queue.workers() if worker.name in connected]
        if not workers:
            raise NobodyOffers(missing=f"no worker is connected to {self._fleet.file.scheduler}")
        fitting = [worker for worker in workers if worker.package == this_kdyno()]
        others = [worker for worker in workers if worker.package != this_kdyno()]
        if not fitting:
            raise OtherKdyno(what=f"worker {others[0].name}", theirs=others[0].package, ours=this_kdyno())
        for other in others:
            self._talk.say(f"note: not used: {other.name} has another kdyno ({other.package})")
        return fitting

    def ask(self, question: MachineQuestion, names: Sequence[str]) -> dict[str, MachineAnswer]:
        """Ask workers by name. Raises SchedulerUnreachable."""
        with self.lock:
            return self.carriage.ask(question, names)

    @contextmanager
    def carrying_boots(
        self, run: str, prepared: Prepared, boots: Mapping[str, BootToCarry], session: Session
    ) -> Iterator[BootCarrier]:
        """Carry boots of a run out, and forget them when all are on record."""
        assert isinstance(prepared.machine, FleetMachine)
        carried = CarriedBoots(self, run, prepared, prepared.machine, boots, session)
        with carried:
            yield carried
