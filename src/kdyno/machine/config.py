"""What an experiment may say of its machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from kdyno.frozen import Frozen
from kdyno.instrument.pmu import PmuConfig
from kdyno.machine.base import Limits
from kdyno.machine.platforms import Platform
from kdyno.measurement import Lane


class QemuConfig(Frozen):
    """A guest under QEMU, on this host."""

    type: Literal["qemu"] = "qemu"
    lane: Lane = "model"
    """`model`: TCG with -icount, exact and repeatable; `wall`: time."""
    accel: Literal["auto", "kvm", "tcg"] = "auto"
    """Wall lane: `auto` takes KVM if it is proven to work here, otherwise TCG, and says so."""
    platform: Platform = "microvm"
    """`microvm` boots fastest; `q35` is for kernels without virtio-mmio."""
    cpu: str | None = None
    """QEMU's CPU model; None: a fixed Haswell in the model lane, `host` under KVM, `max` under TCG."""
    cpus: Annotated[int, Field(ge=1, le=64)] = 1
    memory_mb: Annotated[int, Field(ge=64)] = 512
    icount_shift: Annotated[int, Field(ge=0, le=10)] = 5
    """Model lane: one instruction takes 2**shift ns of the guest's time. Constant within a study."""
    pmu: PmuConfig | None = None
    """Model lane: count the measured loops with the emulated PMU; without it samples are instructions of all code."""
    share: Path | None = None
    """A directory of the host that the guest may mount, read-only, as the 9p tag `host`."""
    limits: Limits = Limits()


class FakeConfig(Frozen):
    """Replays recorded boots; for tests and for looking again at what a machine did."""

    type: Literal["fake"]
    lane: Lane = "model"
    recording: Path
    """Directory: VARIANT/BLOCK, VARIANT or the directory itself holds console.log, stream.jsonl and exit.json."""


MACHINES: dict[str, type[QemuConfig | FakeConfig]] = {"qemu": QemuConfig, "fake": FakeConfig}


def _type_of(machine: Any) -> str:
    """The type that a machine names; `qemu` if it names none."""
    return str(machine.get("type", "qemu") if isinstance(machine, dict) else getattr(machine, "type", ""))


MachineConfig = Annotated[
    Annotated[QemuConfig, Tag("qemu")] | Annotated[FakeConfig, Tag("fake")], Discriminator(_type_of)
]
