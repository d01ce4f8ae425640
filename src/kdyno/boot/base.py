"""What every machine does: take an order for one boot, carry it out, and say how it ended and what came back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Annotated, Any, ClassVar, Protocol, Self

from pydantic import Field

from kdyno.base.cpu import Cpu
from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.base.lanes import DEFAULT_LANE, Clock, LaneName
from kdyno.base.measurement import BootStatus
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.platforms import Output
from kdyno.measure.guest.job import Channel, Job, Program, TestOrder, VirtioPort
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.guest.stream import AgentReport
from kdyno.measure.workload.needs import Needs


class CpuLacks(UserError):
    message = "{what} needs a CPU with {missing}, which the machine's ({cpu}) lacks: it would meet illegal instructions"
    hint = "compile for an older CPU (march), or give the machine another one (cpu, --cpu)"


class NotEmulated(UserError):
    message = "a machine of type `{type}` has no emulated PMU"
    hint = 'take type = "qemu" in [machine]'


class NotTimed(UserError):
    message = "a machine of type `{type}` can't run under KVM"
    hint = 'take type = "qemu" in [machine]'


class NoShell(UserError):
    message = "a machine of type `{type}` can't give a shell"
    hint = "give a command: kdyno boot KERNEL -- COMMAND ..."


Seconds = Annotated[float, Field(gt=0, le=31 * 24 * 3600, allow_inf_nan=False)]
Megabytes = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
"""Of 1,000,000 bytes."""


class BootLimits(Frozen):
    """How long a boot may take, and how much it may say, before it is ended as failed. Host wall time.

    What a guest said beyond these limits is not kept.
    """

    boot: Seconds = 90.0
    """Seconds until the agent says hello."""
    silence: Seconds = 90.0
    """Seconds without a new record or a new byte on the console."""
    total: Seconds = 1800.0
    """Seconds for the whole boot."""
    console_mb: Megabytes = 4.0
    """Megabytes on the console."""
    stream_mb: Megabytes = 64.0
    """Megabytes of the agent's records: all tests with 1000 iterations send 4, and a command that writes as much as is
    kept of its output, byte by byte, 56."""


class MachineSettings(Frozen):
    """What an experiment says of its machine: every kind has a class of its own, which adds to this."""

    starts_kernels: ClassVar[bool] = True
    """False: it takes the kernel that runs, so that variants can say only what that can be told."""

    own_clock: ClassVar[Clock | None] = None
    """What samples are read in, where that is not the lane's clock."""

    type: str
    lane: LaneName = DEFAULT_LANE.name

    def located(self, base: Path) -> Self:
        """The same with its paths absolute; relative ones start from `base`. Raises NameUnfit."""
        raise NotImplementedError

    def at_least(self, needs: Needs, cpus: int = 1) -> Self:  # noqa: ARG002
        """The same machine with at least the memory that is needed and so many CPUs, where it can choose."""
        return self

    def with_pmu(self, pmu: PmuConfig) -> Self:  # noqa: ARG002
        """The same machine in the model lane, counting with this emulated PMU. Raises NotEmulated."""
        raise NotEmulated(type=self.type)

    def in_timed_lane(self) -> Self:
        """The same machine in the wall lane: under KVM or not at all, with one CPU. Raises NotTimed."""
        raise NotTimed(type=self.type)

    def for_check_boot(self) -> Self:
        """The same machine for a boot that measures nothing and may take long."""
        return self

    def with_platform_for(self, kernels: Sequence[tuple[Mapping[str, str], Sequence[str]]]) -> Self:  # noqa: ARG002
        """The same machine so that it starts all these kernels, where it can choose: each its configuration and the
        modules that are at hand.
        """
        return self

    def require_startable(
        self,
        config: Mapping[str, str],  # noqa: ARG002
        modules: Sequence[str],  # noqa: ARG002
        what: str,  # noqa: ARG002
        where: str,  # noqa: ARG002
        is_whole: bool = True,  # noqa: ARG002
    ) -> None:
        """Raise KernelNotStartable if a kernel can't come up here; `what` and `where` are the kernel, for people.

        Of a configuration that isn't whole only what it says is known.
        """
        return

    def require_cpus(self, config: Mapping[str, str], what: str) -> None:  # noqa: ARG002
        """Raise CpusMissing if a kernel's configuration, as far as it is known, can't use all of the machine's CPUs;
        `what` is the kernel, for people.
        """
        return


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
    symbols: Path | None = None
    """Its System.map, where vmlinux has none of its own."""
    modules: Path | None = None
    """A tar archive of modules, each after what it needs; a machine loads what it needs of them."""
    variant: str = ""
    block: int = 0
    is_counted: bool = True
    """False: a machine with a PMU doesn't count, and leaves no record; the guest is the same."""
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
    counters: Path | None = None
    """Snapshots of an instrumented kernel's counters, if the boot is ok and its job asked for them."""
    conditions: dict[str, float] = field(default_factory=dict)
    """What the host was doing meanwhile; see conditions.py. Empty where that doesn't matter."""
    advice: str = ""
    """What would help, where the machine knows."""


@dataclass(frozen=True)
class Description:
    """What a machine says of itself before the first boot."""

    lane: LaneName
    parallel: int
    """Boots that may run side by side without disturbing each other's samples."""
    facts: dict[str, Any]
    """Everything of the machine that decides the samples, JSON-able: part of the key of a boot."""
    host: dict[str, Any]
    """CPU, memory, kernel and distribution of the host that boots, as kdyno.base.host describes one."""
    limits: BootLimits | None = None
    """They decide how a boot ends, not what an `ok` one measures; part of its key all the same."""
    channel: Channel = field(default_factory=VirtioPort)
    """How the agent's records get to this machine."""
    icount_shift: int | None = None
    """Model lane: what the job tells the agent of the guest's clock."""
    shared: tuple[Path, ...] = ()
    """Directories of the host that every guest may read."""
    needs_images: bool = True
    """False: it boots nothing that must be built."""
    notices: tuple[str, ...] = ()
    """What a reader must know first."""

    def job(
        self,
        iterations: int,
        *,
        tests: tuple[TestOrder, ...] = (),
        programs: tuple[Program, ...] = (),
        interactive: bool = False,
    ) -> Job:
        """A job for this machine, with what the agent shall do."""
        return Job(
            lane=self.lane,
            icount_shift=self.icount_shift,
            channel=self.channel,
            iterations=iterations,
            tests=tests,
            programs=programs,
            interactive=interactive,
        )


class MachineBackend(Protocol):
    """Where an image boots."""

    def describe(self) -> Description:
        """Look at what is there; raise KdynoError if it can't boot anything."""
        ...

    def cpu(self) -> Cpu:
        """The CPU of the host that boots: what `march = "auto"` compiles for. Raises NoCpuinfo."""
        ...

    def require_cpu(self, flags: Sequence[str], what: str) -> None:
        """Raise CpuLacks unless the guest's CPU has all these flags of /proc/cpuinfo; `what` needs them, for people."""
        ...

    def require_options(self, kernel: Path, output: Output) -> None:
        """Raise UserError if the kernel's configuration, where it is known, can't get this output out of a guest."""
        ...

    def require_cmdline(self, words: Sequence[str], what: str) -> None:
        """Raise KdynoError for words of the command line that it can't heed; `what` has them, for people."""
        ...

    def provide(self, needs: Needs, state: State, talk: Talk) -> None:
        """Have at hand in every boot the programs of the Debian packages that are needed, and the members of archives
        in them. Raises KdynoError if that can't be.
        """
        ...

    def stand_in(self, variant: str, block: int) -> str:
        """What decides a boot in the place of an image, where none is needed: a digest."""
        ...

    def boot(self, order: BootOrder) -> BootEnd:
        """Carry out one boot. A kernel that fails is a BootEnd, not an exception."""
        ...

    def converse(self, order: BootOrder) -> int:
        """Boot with the console on this terminal, for a person; return an exit status. Raises NoShell."""
        ...
