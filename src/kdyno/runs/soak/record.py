"""The record of a soak: kernel, machine, loads, times, observations and the verdict."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from kdyno.base.frozen import Frozen
from kdyno.boot.ktap import FailedTest
from kdyno.measure.guest.soak import MemoryField, Progress
from kdyno.runs.soak.growth import GrowthWindow, Slope

SoakVerdict = Literal["passed", "failed", "unfinished"]


class SoakedKernel(Frozen):
    """The kernel of a soak: enough to find its image, and to compare the files of a package with it."""

    image: str
    """The image's key."""
    soak_variant: tuple[str, ...]
    """`--with`: the options that were built into it for the soak; empty: it is the named kernel itself."""
    variant_of: str | None
    """The key of the named image, if another one was built for the soak."""
    release: str
    """`uname -r`."""
    source: str
    source_identity: str
    compiler: str
    files: dict[str, str]
    """SHA-256 by file of the image: bzImage, vmlinux, config ..."""
    detectors: dict[str, bool]
    """By Kconfig symbol, whether this detector of mistakes is in the kernel."""


class SoakMachine(Frozen):
    """The machine of a soak."""

    facts: dict[str, Any]
    """QEMU, accelerator, CPU model, CPUs, memory, command line, agent, packages of the root with versions."""
    host: dict[str, Any]
    conditions: dict[str, float]
    """The conditions of the host during the boot; see docs/host.md."""
    words: tuple[str, ...]
    """Words of the kernel command line beside those of the machine."""
    seed: int
    cpus_online: int | None


class ToldFailure(Frozen):
    """One failure of a load."""

    phase: str
    round: int
    status: int
    said: str
    """The end of the output."""


class SoakLoadOutcome(Frozen):
    """The outcome of a load."""

    load: str
    parameters: dict[str, str]
    rounds: int
    failures: int
    mean_seconds: float | None
    """The mean time of the good rounds; `longest_seconds` is their longest."""
    longest_seconds: float | None
    progress: Progress
    told: tuple[ToldFailure, ...]
    """The first failures."""


class Rest(Frozen):
    """The memory of a guest without a running load, in MB."""

    mb: dict[MemoryField, float]
    tasks: int | None
    files: int | None
    tainted: int | None


class SoakMemory(Frozen):
    """The memory of the kernel during a soak."""

    before: Rest | None
    """The memory before the first load was set up."""
    after: Rest | None
    """The memory after the last load was torn down."""
    blocks: tuple[GrowthWindow, ...]
    """The memory under load."""
    slopes: tuple[Slope, ...]


class ConsoleFinding(Frozen):
    """A message on the console that reports a mistake of the kernel."""

    reason: str
    said: str
    times: int


class SoakKunit(Frozen):
    """The results of the kernel's own tests at the beginning."""

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
    """The reasons for a failure or an unfinished soak: it was cut short, or a load finished no round."""
    undecided: tuple[str, ...]
    """The questions that this soak left undecided."""
    kdyno: str
    started: datetime
    hours_asked: float
    hours_lived: float
    """The hours under load by the clock of the guest."""
    boot: str
    """The end of the boot: `ok`, or `failed` or `lost` with the reason."""
    kernel: SoakedKernel
    machine: SoakMachine
    loads: tuple[SoakLoadOutcome, ...]
    memory: SoakMemory
    console: tuple[ConsoleFinding, ...]
    console_sha256: str
    kunit: SoakKunit | None
