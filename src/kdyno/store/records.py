"""What the store keeps, as frozen types: a run, its variants, its benchmarks, its boots and their samples."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from kdyno.frozen import Frozen
from kdyno.kernel.image import ImageRecord
from kdyno.kernel.recipe import Recipe

Lane = Literal["model", "wall"]
Direction = Literal["lower", "higher"]
BootStatus = Literal["ok", "failed", "lost"]
Correction = Literal["holm", "bh"]
"""How p-values are adjusted for the number of comparisons: after Holm, or after Benjamini and Hochberg."""
INT64_MAX = 2**63 - 1
Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""What every database holds in one column."""


class Benchmark(Frozen):
    """One measured quantity: its unit, and which direction is better."""

    name: str
    """`lat_syscall.null`"""
    test: str
    """The LMBench test it belongs to: `lat_syscall`."""
    unit: str
    """`instr`, `cycles` or `ns` per operation; `B/instr`, `B/cycle` or `MB/s` for bandwidths."""
    direction: Direction
    description: str


class Sample(Frozen):
    """One reading: so much work took so many units of the lane's clock."""

    benchmark: str
    iteration: Int64
    elapsed: Int64
    """Instructions in the model lane, or modelled cycles; nanoseconds in the wall lane."""
    work: Int64
    """Operations, or bytes for a bandwidth."""


class BootRecord(Frozen):
    """One boot and what came of it. `ok` boots carry samples; `failed` and `lost` ones a reason."""

    variant: str
    block: int
    position: int
    """Place in the order in which the run started its boots."""
    layout: int = 0
    """Which of the variant's images was booted: the index of its link order."""
    attempt: int = 0
    """0, or how often this boot had been lost before."""
    seed: Int64
    status: BootStatus
    reason: str = ""
    started: AwareDatetime
    seconds: float
    """Wall time of the whole boot."""
    ready_seconds: float | None = None
    """Wall time until the agent said hello."""
    conditions: dict[str, float] = {}
    """What the host was doing meanwhile, as far as it can be read; see machine/conditions.py."""
    kernel: str | None = None
    """`uname -r`, as the guest said it."""
    command: tuple[str, ...] = ()
    """The command that started it."""
    console: str | None = None
    """SHA-256 of the console artefact."""
    stream: str | None = None
    """SHA-256 of the agent stream artefact."""
    pmu: str | None = None
    """SHA-256 of the PMU record artefact; `ok` boots of a machine with the emulated PMU have one."""
    samples: tuple[Sample, ...] = ()
    unsupported: dict[str, str] = {}
    """Benchmarks that this kernel can't run, and why."""
    broken: dict[str, str] = {}
    """Benchmarks that failed, and how."""


class VariantRecord(Frozen):
    """A variant of a run: its recipe and the images that it became."""

    name: str
    recipe: Recipe
    images: tuple[ImageRecord, ...]
    """One for each layout; one if layout wasn't sampled; none where the machine replays a recording."""


class RunRecord(Frozen):
    """One carrying-out of an experiment on one machine."""

    id: str
    """Content hash of all that decides the samples, and of how often the experiment was run before."""
    name: str
    created: AwareDatetime
    experiment: str
    """The experiment as JSON, paths made absolute: enough to run it again."""
    baseline: str
    blocks: int
    layouts: int = 0
    """Link orders of every variant; 0: layout wasn't sampled."""
    stopped_at: int | None = None
    """Blocks after which the group-sequential rule ended the run; None while it hasn't."""
    seed: Int64
    lane: Lane
    machine: dict[str, Any]
    """What the machine said of itself: type, accelerator, QEMU version, CPU model, ..."""
    host: dict[str, Any]
    """CPU, memory, kernel and distribution of the host."""
    notices: tuple[str, ...]
    """What a reader must know first: a fallback to TCG, a lane whose clock can't be trusted."""
    margin: float
    """Equivalence margin as a fraction: 0.01 is 1 %."""
    alpha: float
    correction: Correction = "holm"
    looks: int = 1
    """How often the run was to be judged; more than once makes it group-sequential."""
    kdyno: str
    variants: tuple[VariantRecord, ...]
