"""The record of a soak: what ran on what, for how long, what was seen, and what follows from that."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from kdyno.base.frozen import Frozen
from kdyno.boot.ktap import FailedTest
from kdyno.measure.guest.soak import MemoryField, Progress
from kdyno.runs.soak.growth import GrowthWindow, Slope

SoakVerdict = Literal["passed", "failed", "unfinished"]


class SoakedKernel(Frozen):
    """Which kernel it was: enough to find its image, and to compare a package's files with."""

    image: str
    """The image's key."""
    soak_variant: tuple[str, ...]
    """`--with`: what was built into it for the soak; empty: it is the named kernel itself."""
    variant_of: str | None
    """Key of the image that was named, where another one was built for the soak."""
    release: str
    """`uname -r`."""
    source: str
    source_identity: str
    compiler: str
    files: dict[str, str]
    """SHA-256 by file of the image: bzImage, vmlinux, config ..."""
    detectors: dict[str, bool]
    """What it could have noticed of its own mistakes: Kconfig symbols."""


class SoakMachine(Frozen):
    """Where it ran."""

    facts: dict[str, Any]
    """QEMU, accelerator, CPU model, CPUs, memory, command line, agent, packages of the root with versions."""
    host: dict[str, Any]
    conditions: dict[str, float]
    """What the host was doing meanwhile; see docs/host.md."""
    words: tuple[str, ...]
    """Words of the kernel command line beside the machine's own."""
    seed: int
    cpus_online: int | None


class ToldFailure(Frozen):
    """One failure of a load."""

    phase: str
    round: int
    status: int
    said: str
    """The end of what it wrote."""


class SoakLoadOutcome(Frozen):
    """What a load did."""

    load: str
    parameters: dict[str, str]
    rounds: int
    failures: int
    mean_seconds: float | None
    """Of the good rounds, as the next."""
    longest_seconds: float | None
    progress: Progress
    told: tuple[ToldFailure, ...]
    """The first failures."""


class Rest(Frozen):
    """The guest with no load running, in MB."""

    mb: dict[MemoryField, float]
    tasks: int | None
    files: int | None
    tainted: int | None


class SoakMemory(Frozen):
    """What the kernel's memory did."""

    before: Rest | None
    """Before the first load was set up."""
    after: Rest | None
    """After the last one was torn down."""
    blocks: tuple[GrowthWindow, ...]
    """Under load."""
    slopes: tuple[Slope, ...]


class ConsoleFinding(Frozen):
    """A message that should not be there."""

    reason: str
    said: str
    times: int


class SoakKunit(Frozen):
    """What the kernel's own tests said at the beginning."""

    suites: int
    passed: int
    failed: int
    skipped: int
    failures: tuple[FailedTest, ...]
    fault: str


class SoakRecord(Frozen):
    """`kdyno soak --json`, and the file that -o writes."""

    v: Literal[1] = 1
    id: str
    verdict: SoakVerdict
    reasons: tuple[str, ...]
    """Why it failed, or why it is unfinished: cut short, or too short for a load to come round once."""
    undecided: tuple[str, ...]
    """What this soak could not tell."""
    kdyno: str
    started: datetime
    hours_asked: float
    hours_lived: float
    """Under load, by the guest's clock."""
    boot: str
    """How the boot ended: `ok`, or `failed` or `lost` with the reason."""
    kernel: SoakedKernel
    machine: SoakMachine
    loads: tuple[SoakLoadOutcome, ...]
    memory: SoakMemory
    console: tuple[ConsoleFinding, ...]
    console_sha256: str
    kunit: SoakKunit | None
