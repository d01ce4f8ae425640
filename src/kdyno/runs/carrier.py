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
from kdyno.runs.images import Images, Plans, build_images
from kdyno.runs.one_boot import BootRequest
from kdyno.store.store import Store


@dataclass(frozen=True)
class BootsToCarry:
    """Boots that aren't on record, by their keys, and where they are carried out."""

    name: str
    """The id of their run, or another name that no other boots have."""
    boots: Mapping[str, BootRequest]
    machine: MachineBackend
    about: Description
    store: Store
    talk: Talk


class BootCarrier(Protocol):
    """What carries boots out."""

    @property
    def in_flight(self) -> int:
        """Return the number of boots that are asked for at a time."""
        ...

    def boot(self, key: str, request: BootRequest, directory: Path, cancelled: Event) -> BootEnd:
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
        """Begin to carry boots out."""
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

    def boot(self, key: str, request: BootRequest, directory: Path, cancelled: Event) -> BootEnd:  # noqa: ARG002
        return self._machine.boot(request.order(directory, cancelled))
