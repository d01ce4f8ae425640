"""The kinds of machines. A new kind is a file with its settings and its class, and a row here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from kdyno.base.errors import UserError
from kdyno.base.frozen import one_of
from kdyno.base.lanes import LANES, PMU_CLOCKS, Clock, LaneName
from kdyno.base.machine_facts import recorded_pmu_clock
from kdyno.base.mistakes import problems
from kdyno.boot.base import MachineBackend, MachineSettings
from kdyno.boot.fake import FakeConfig, FakeMachine
from kdyno.boot.local import LocalConfig, LocalMachine
from kdyno.boot.metal.machine import MetalMachine
from kdyno.boot.metal.settings import MetalConfig
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.boot.uml import UmlConfig, UmlMachine
from kdyno.measure.workload.needs import Runner


@dataclass(frozen=True)
class MachineKind:
    """One kind of machine."""

    settings: type[MachineSettings]
    """The class of its settings in [machine]."""
    machine: Callable[[Any], MachineBackend]
    """The function that makes a machine from its settings."""


MACHINES = {
    "qemu": MachineKind(QemuConfig, QemuMachine),
    "uml": MachineKind(UmlConfig, UmlMachine),
    "local": MachineKind(LocalConfig, LocalMachine),
    "metal": MachineKind(MetalConfig, MetalMachine),
    "fake": MachineKind(FakeConfig, FakeMachine),
}
"""By `type` in [machine]; the first is meant where none is named."""


OpenMachine = Callable[[MachineSettings], MachineBackend]
"""Opens the machine of these settings, here or on a fleet."""


class BadMachine(UserError):
    message = "{where}: {problems}"
    hint = "choose a type of {types}; docs/formats.md lists the keys of [machine]"


def settings_type(name: str) -> type[MachineSettings]:
    """Return the class of a kind's settings; for an unknown kind the class of the settings that all kinds have."""
    return MACHINES[name].settings if name in MACHINES else MachineSettings


def kind_named(written: Mapping[str, Any]) -> str:
    """Return the kind of machine that a table like [machine] names, or the first kind. It may be unknown."""
    return str(written.get("type", next(iter(MACHINES))))


def read_machine(written: Mapping[str, Any], where: str) -> MachineSettings:
    """Return the settings of a table like [machine]; `where` names the table in messages. Raises BadMachine."""
    try:
        return TypeAdapter[MachineSettings](MachineConfig).validate_python(written)
    except ValidationError as error:
        kind = kind_named(written)
        unknown = [] if kind in MACHINES else [f"there is no type `{kind}`"]
        faults = unknown or problems(error, settings_type(kind), written)
        raise BadMachine(where=where, problems="; ".join(faults), types=", ".join(MACHINES)) from None


def open_machine(settings: MachineSettings) -> MachineBackend:
    """Return the machine of these settings. Raises KdynoError if they contradict each other."""
    return MACHINES[settings.type].machine(settings)


def default_machine(runner: Runner = "agent", **settings: Any) -> MachineSettings:
    """The machine that is meant where none is named, for loads of this runner; `settings` are what [machine] may say of
    it.
    """
    return next(kind.settings for kind in MACHINES.values() if kind.settings.runner == runner)(**settings)


def host_machine() -> MachineSettings:
    """This host, on the kernel that it runs."""
    return LocalConfig()


def kind_on_record(facts: Mapping[str, Any]) -> type[MachineSettings]:
    """What holds for the kind of machine that a run had, by its facts; of a kind that isn't known, what is usual."""
    return settings_type(str(facts.get("type")))


def clock_on_record(facts: Mapping[str, Any], lane: LaneName) -> Clock | None:
    """What the samples of a run were read in, by its machine's facts and its lane; None: in the clock of the lane."""
    if LANES[lane].uses_core_pmu:
        return None
    return PMU_CLOCKS.get(recorded_pmu_clock(facts) or "") or kind_on_record(facts).own_clock


if TYPE_CHECKING:
    MachineConfig = MachineSettings
else:
    MachineConfig = one_of({name: kind.settings for name, kind in MACHINES.items()})
