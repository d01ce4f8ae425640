"""The machines that there are: a new one is a file with its settings and its class, and a row here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kdyno.base.frozen import one_of
from kdyno.base.lanes import PMU_CLOCKS, Clock
from kdyno.boot.base import MachineBackend, MachineSettings
from kdyno.boot.fake import FakeConfig, FakeMachine
from kdyno.boot.local import LocalConfig, LocalMachine
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig


@dataclass(frozen=True)
class MachineKind:
    """One kind of machine."""

    settings: type[MachineSettings]
    """What [machine] may say of it."""
    machine: Callable[[Any], MachineBackend]
    """Makes a machine of its settings."""


MACHINES = {
    "qemu": MachineKind(QemuConfig, QemuMachine),
    "local": MachineKind(LocalConfig, LocalMachine),
    "fake": MachineKind(FakeConfig, FakeMachine),
}
"""By `type` in [machine]; the first is meant where none is named."""


def open_machine(settings: MachineSettings) -> MachineBackend:
    """The machine that these settings describe. Raises KdynoError where they contradict each other."""
    return MACHINES[settings.type].machine(settings)


def default_machine(**settings: Any) -> MachineSettings:
    """The machine that is meant where none is named; `settings` are what [machine] may say of it."""
    return next(iter(MACHINES.values())).settings(**settings)


def host_machine() -> MachineSettings:
    """This host, on the kernel that it runs."""
    return LocalConfig()


def kind_on_record(facts: Mapping[str, Any]) -> type[MachineSettings]:
    """What holds for the kind of machine that a run had, by its facts; of a kind that isn't known, what is usual."""
    kind = MACHINES.get(str(facts.get("type")))
    return kind.settings if kind else MachineSettings


def clock_on_record(facts: Mapping[str, Any]) -> Clock | None:
    """What the samples of a run were read in, by its machine's facts; None: in the clock of its lane."""
    return kind_on_record(facts).own_clock or PMU_CLOCKS.get(str(facts.get("pmu_clock")))


if TYPE_CHECKING:
    MachineConfig = MachineSettings
else:
    MachineConfig = one_of({name: kind.settings for name, kind in MACHINES.items()})
