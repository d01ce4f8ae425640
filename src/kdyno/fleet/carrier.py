"""Carries a run out on a fleet: the machine of workers that are alike, builds and boots by tasks of the queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import MachineBackend, MachineSettings
from kdyno.fleet.carried_boots import CarriedBoots
from kdyno.fleet.carried_builds import build_on_fleet
from kdyno.fleet.carried_tasks import CarriedTasks
from kdyno.fleet.connection import FleetConnection
from kdyno.fleet.errors import NobodyOffers, OtherKdyno
from kdyno.fleet.machine import FleetMachine
from kdyno.fleet.messages import MachineAnswer, MachineQuestion
from kdyno.fleet.package_digest import this_kdyno
from kdyno.fleet.queue.model import HostCheck, Worker
from kdyno.runs.carrier import BootCarrier, BootsToCarry
from kdyno.runs.images import Images, Plans


class FleetCarrier:
    """A fleet that carries runs out. Raises SchedulerUnreachable, OtherKdyno and NobodyOffers."""

    def __init__(self, connection: FleetConnection, talk: Talk, checked_host: str = "") -> None:
        """With `checked_host` only that one measures, whatever came of its A/As: this is to be another."""
        self._connection, self._talk, self._checked_host = connection, talk, checked_host

    def open_machine(self, settings: MachineSettings) -> MachineBackend:
        """Return the machine of the workers that are connected now."""
        workers, host = self.workers(), self._checked_host
        if not host:
            return FleetMachine(settings, workers, self.ask, self._connection.queue.checks())
        under_way = {host: HostCheck(passed=True, detail="under way", checked=datetime.now(UTC))}
        return FleetMachine(settings, [worker for worker in workers if worker.host == host], self.ask, under_way)

    def workers(self) -> list[Worker]:
        """Return the connected workers that have this kdyno. Raises NobodyOffers and OtherKdyno."""
        with self._connection.lock:
            connected = set(self._connection.carriage.workers())
        workers = [worker for worker in self._connection.queue.workers() if worker.name in connected]
        if not workers:
            raise NobodyOffers(missing=f"no worker is connected to {self._connection.fleet.file.scheduler}")
        fitting = [worker for worker in workers if worker.package == this_kdyno()]
        others = [worker for worker in workers if worker.package != this_kdyno()]
        if not fitting:
            raise OtherKdyno(what=f"worker {others[0].name}", theirs=others[0].package, ours=this_kdyno())
        for other in others:
            self._talk.say(f"note: not used: {other.name} has another kdyno ({other.package})")
        return fitting

    def ask(self, question: MachineQuestion, names: Sequence[str]) -> dict[str, MachineAnswer]:
        """Ask workers by name. Raises SchedulerUnreachable."""
        with self._connection.lock:
            return self._connection.carriage.ask(question, names)

    def build_images(self, plans: Plans, state: State, talk: Talk) -> Images:
        """Have workers build the images. Raises what `build_on_fleet` raises."""
        return build_on_fleet(plans, self._connection, self.workers, state, talk)

    @contextmanager
    def carrying_boots(self, boots: BootsToCarry) -> Iterator[BootCarrier]:
        """Carry boots out, and forget them when all are on record."""
        machine = boots.machine
        assert isinstance(machine, FleetMachine)
        with CarriedTasks(self._connection, boots.name, machine.crew.kind, machine.crew.workers, boots.talk) as tasks:
            yield CarriedBoots(self._connection.blobs, tasks, boots, machine)
