"""What travels through Dask and the queue: names and JSON, with a schema on both sides, and never code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AwareDatetime, Field

from kdyno.base.cpu import Cpu
from kdyno.base.frozen import Frozen
from kdyno.base.lanes import LaneName
from kdyno.base.measurement import BootStatus
from kdyno.boot.base import BootLimits, Description, MachineSettings
from kdyno.boot.registry import MachineConfig
from kdyno.fleet.queue.model import Kind
from kdyno.measure.guest.job import Channel, Job
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.workload.needs import Needs

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
if TYPE_CHECKING:
    AnyMachine = MachineSettings
else:
    AnyMachine = MachineConfig


class Ticket(Frozen):
    """The right to one slot, for a task of a run."""

    package: str
    """The client's kdyno."""
    run: str
    kind: Kind
    preferred: str
    """The key of the task that it was made for."""


class MachineQuestion(Frozen):
    """A question to a worker: how does this machine describe itself there?"""

    package: str
    machine: AnyMachine
    needs: Needs
    flags: tuple[str, ...] = ()
    """Flags of /proc/cpuinfo that the machine's CPU must have."""


class MachineAnswer(Frozen):
    """A worker's answer: the description of its machine, or why it has none."""

    refusal: str = ""
    lane: LaneName | None = None
    parallel: int = 1
    facts: dict[str, Any] = {}
    host: dict[str, Any] = {}
    limits: BootLimits | None = None
    channel: Channel | None = None
    icount_shift: int | None = None
    pmu: PmuConfig | None = None
    is_emulated: bool = False
    needs_images: bool = True
    notices: tuple[str, ...] = ()
    cpu: Cpu | None = None
    lacks: str = ""
    """What its CPU lacks of the flags."""

    @classmethod
    def of(cls, about: Description, cpu: Cpu | None, lacks: str) -> MachineAnswer:
        """Return the answer with a description."""
        return cls(
            lane=about.lane,
            parallel=about.parallel,
            facts=about.facts,
            host=about.host,
            limits=about.limits,
            channel=about.channel,
            icount_shift=about.icount_shift,
            pmu=about.pmu,
            is_emulated=about.is_emulated,
            needs_images=about.needs_images,
            notices=about.notices,
            cpu=cpu,
            lacks=lacks,
        )

    def description(self, parallel: int, host: dict[str, Any]) -> Description:
        """Return the description of a fleet of such machines, which boots so many at a time."""
        assert self.lane and self.channel
        return Description(
            lane=self.lane,
            parallel=parallel,
            facts=self.facts,
            host=host,
            limits=self.limits,
            channel=self.channel,
            icount_shift=self.icount_shift,
            pmu=self.pmu,
            is_emulated=self.is_emulated,
            needs_images=self.needs_images,
            notices=self.notices,
        )


class BootSpec(Frozen):
    """One boot, for a worker."""

    machine: AnyMachine
    needs: Needs
    facts: Sha256
    """The digest of the facts of the machine that the boot's key has."""
    image: Sha256 | None
    """The record of the image, in the blob store with its files; None if the machine boots without one."""
    name: str
    cmdline: tuple[str, ...]
    job: Job
    seed: int
    variant: str
    block: int
    is_counted: bool


class BootResult(Frozen):
    """How a boot ended, with its files by digest."""

    status: BootStatus
    reason: str
    started: AwareDatetime
    seconds: float
    ready_seconds: float | None
    command: tuple[str, ...]
    conditions: dict[str, float]
    advice: str
    disturbance: str
    console: Sha256 | None
    stream: Sha256 | None
    pmu: Sha256 | None
    counters: Sha256 | None


class BuildSpec(Frozen):
    """Images of one object directory, for a worker. Files are in the blob store."""

    plans: Sha256
    """The plans of the images, as JSON."""
    tree: Sha256
    """The archive of the source, patches applied."""
    inputs: dict[str, Sha256]
    """The files that the plans take, by their names there."""
    packers: dict[str, str | None]
    """The digests of the programs beside the compiler that decide the images; see kdyno.kernel.packers."""


class BuildFailure(Frozen):
    """Why a kernel doesn't build: on every host the same."""

    error: str
    advice: str
    log: Sha256 | None = None


class BuildResult(Frozen):
    """The images, by the digests of their records, in the order of the plans; or why there are none."""

    records: tuple[Sha256, ...] = ()
    failure: BuildFailure | None = None
