"""The machines that there are: a new one is a file with its settings and its class, and a row here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Discriminator, Tag

from kdyno.machine.base import Machine, MachineSettings
from kdyno.machine.fake import FakeConfig, FakeMachine
from kdyno.machine.qemu import QemuConfig, QemuMachine


@dataclass(frozen=True)
class Kind:
    """One kind of machine."""

    settings: type[MachineSettings]
    """What [machine] may say of it."""
    machine: Callable[[Any], Machine]
    """Makes a machine of its settings."""


MACHINES = {"qemu": Kind(QemuConfig, QemuMachine), "fake": Kind(FakeConfig, FakeMachine)}
"""By `type` in [machine]; the first is meant where none is named."""


def open_machine(settings: MachineSettings) -> Machine:
    """The machine that these settings describe. Raises KdynoError where they contradict each other."""
    return MACHINES[settings.type].machine(settings)


def _type_of(machine: Any) -> str:
    """The type that a machine names; the first if it names none."""
    first = next(iter(MACHINES))
    return str(machine.get("type", first) if isinstance(machine, dict) else getattr(machine, "type", ""))


if TYPE_CHECKING:
    MachineConfig = MachineSettings
else:
    MachineConfig = Annotated[
        Union[tuple(Annotated[kind.settings, Tag(name)] for name, kind in MACHINES.items())],  # noqa: UP007
        Discriminator(_type_of),
    ]
