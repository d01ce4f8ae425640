"""What every machine does: take an order for one boot, carry it out, and say how it ended and what came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from kdyno.errors import UserError
from kdyno.frozen import Frozen
from kdyno.instrument.job import Job
from kdyno.instrument.stream import AgentReport
from kdyno.measurement import BootStatus, Lane


class CpuLacks(UserError):
    message = "{what} needs a CPU with {missing}, which the machine's ({cpu}) lacks: it would meet illegal instructions"
    hint = "compile for an older CPU (march), or give the machine another one (cpu, --cpu)"


class Limits(Frozen):
    """How long a boot may take, and how much it may say, before it is ended as failed. Host wall time."""

    boot: float = 90.0
    """Seconds until the agent says hello."""
    silence: float = 90.0
    """Seconds without a new record or a new byte on the console."""
    total: float = 1800.0
    """Seconds for the whole boot."""
    console_mb: float = 4.0
    """Megabytes on the console."""


@dataclass(frozen=True)
class BootOrder:
    """One boot to be done."""

    name: str
    """For people and file names: `gcc-O2, block 3`."""
    kernel: Path | None
    """bzImage; None where the machine needs none (a replay)."""
    cmdline: tuple[str, ...]
    """Words of the variant; the machine adds its own."""
    job: Job
    seed: int
    """Non-negative, below 2**31; the same for all variants of a block."""
    directory: Path
    """Exists and is empty; the machine leaves console.log and stream.jsonl here, and pmu.kpmu if it has a PMU."""
    vmlinux: Path | None = None
    """What the kernel was made from; a machine with a PMU reads its symbols."""
    variant: str = ""
    block: int = 0
    cancelled: Event = field(default_factory=Event)
    """Set by another thread: end the boot at once, as lost."""


@dataclass(frozen=True)
class BootEnd:
    """How a boot ended."""

    status: BootStatus
    reason: str
    seconds: float
    ready_seconds: float | None
    command: tuple[str, ...]
    console: Path
    stream: Path
    report: AgentReport
    pmu: Path | None = None
    """The PMU record, if the boot is ok and left one."""


@dataclass(frozen=True)
class Description:
    """What a machine says of itself before the first boot."""

    lane: Lane
    parallel: int
    """Boots that may run side by side without disturbing each other's samples."""
    facts: dict[str, Any]
    """Everything that decides the samples, JSON-able: part of the identity of a run."""
    notices: tuple[str, ...] = field(default=())
    """What a reader must know first."""


class Machine(Protocol):
    """Where an image boots."""

    def describe(self) -> Description:
        """Look at what is there; raise KdynoError if it can't boot anything."""
        ...

    def require_cpu(self, flags: Sequence[str], what: str) -> None:
        """Raise CpuLacks unless the CPU has all these flags of /proc/cpuinfo; `what` needs them, for people."""
        ...

    def boot(self, order: BootOrder) -> BootEnd:
        """Carry out one boot. A kernel that fails is a BootEnd, not an exception."""
        ...
