"""The machines that there are: a new one is a file with its settings and its class, and a row here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kdyno.base.frozen import one_of
from kdyno.boot.base import Machine, MachineSettings
from kdyno.boot.fake import FakeConfig, FakeMachine
from kdyno.boot.local import LocalConfig, LocalMachine
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig


@dataclass(frozen=True)
class Kind:
    """One kind of machine."""

    settings: type[MachineSettings]
    """What [machine] may say of it."""
    machine: Callable[[Any], Machine]
    """Makes a machine of its settings."""


MACHINES = {
    "qemu": Kind(QemuConfig, QemuMachine),
    "local": Kind(LocalConfig, LocalMachine),
    "fake": Kind(FakeConfig, FakeMachine),
}
"""By `type` in [machine]; the first is meant where none is named."""


def open_machine(settings: MachineSettings) -> Machine:
    """The machine that these settings describe. Raises KdynoError where they contradict each other."""
    return MACHINES[settings.type].machine(settings)


if TYPE_CHECKING:
    MachineConfig = MachineSettings
else:
    MachineConfig = one_of({name: kind.settings for name, kind in MACHINES.items()})
