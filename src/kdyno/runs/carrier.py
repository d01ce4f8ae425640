"""What carries the builds and the boots of a run out: this host, or a fleet of hosts (kdyno.fleet)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Protocol

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd, Description, MachineBackend, MachineSettings
from kdyno.boot.registry import open_machine
from kdyno.runs.experiment.plan import PlannedBoot
from kdyno.runs.images import Images, Plans, build_images
from kdyno.runs.one_boot import BootRequest
from kdyno.store.store import Store


@dataclass(frozen=True)
class BootToCarry:
    """A boot of a run, and its request."""

    planned: PlannedBoot
    request: BootRequest


@dataclass(frozen=True)
class BootsToCarry:
    """The boots of a run that are left, by their keys, and where they are carried out."""

    run: str
    boots: Mapping[str, BootToCarry]
    variants: int
    machine: MachineBackend
    settings: MachineSettings
    about: Description
    store: Store
    talk: Talk


class BootCarrier(Protocol):
    """What carries the boots of a run out."""

    @property
    def in_flight(self) -> int:
        """Return the number of boots that are asked for at a time."""
        ...

    def boot(self, key: str, boot: BootToCarry, directory: Path, cancelled: Event) -> BootEnd:
        """Carry a boot out, with its files in an empty directory. Many threads call this at a time."""
        ...


class Carrier(Protocol):
    """What carries a run out."""

    def open_machine(self, settings: MachineSettings) -> MachineBackend:
        """Return the machine of these settings. Raises KdynoError if they contradict each other."""
        ...

    def build_images(self, plans: Plans, state: State, talk: Talk) -> Images:
        """Build each image once, and return them all. Raises KdynoError."""
        ...

    def carrying_boots(self, boots: BootsToCarry) -> AbstractContextManager[BootCarrier]:
        """Begin to carry boots of a run out."""
        ...


class ThisHost:
    """This host carries everything out."""

    def open_machine(self, settings: MachineSettings) -> MachineBackend:
        return open_machine(settings)

    def build_images(self, plans: Plans, state: State, talk: Talk) -> Images:
        return build_images(plans, state, talk)

    @contextmanager
    def carrying_boots(self, boots: BootsToCarry) -> Iterator[BootCarrier]:
        yield _BootsHere(boots.machine, boots.about.parallel)


class _BootsHere:
    def __init__(self, machine: MachineBackend, in_flight: int) -> None:
        self._machine, self._in_flight = machine, in_flight

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def boot(self, key: str, boot: BootToCarry, directory: Path, cancelled: Event) -> BootEnd:  # noqa: ARG002
        return self._machine.boot(boot.request.order(directory, cancelled))
