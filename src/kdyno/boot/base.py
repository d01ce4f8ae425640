"""The protocol of machines: carry out the order for one boot, and return its end and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Annotated, Any, ClassVar, Protocol, Self, runtime_checkable

from pydantic import Field

from kdyno.base.cpu import Cpu
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.frozen import Frozen
from kdyno.base.lanes import DEFAULT_LANE, Clock, LaneName
from kdyno.base.measurement import BootStatus
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.platforms import Output
from kdyno.kernel.image import ArchName
from kdyno.kernel.recipe import KconfigValue
from kdyno.measure.guest.job import Channel, Job, Program, TestOrder, VirtioPort
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.guest.stream import AgentReport
from kdyno.measure.workload.needs import Needs, Runner


class CpuLacks(UserError):
    message = "{what} requires a CPU with {missing}, which the machine's CPU ({cpu}) lacks"
    hint = "compile for an older CPU (march), or choose another CPU of the machine (cpu, --cpu)"


class MachineUnreachable(InfrastructureError):
    """A machine that does not answer: what needs no answer of it can still be planned."""


class NotEmulated(UserError):
    message = "a machine of type `{type}` has no emulated PMU"
    hint = 'take type = "qemu" in [machine]'


class NotTimed(UserError):
    message = "a machine of type `{type}` cannot run under KVM"
    hint = 'take type = "qemu" in [machine]'


class NoShell(UserError):
    message = "a machine of type `{type}` cannot run a shell"
    hint = "add a command: kdyno boot KERNEL -- COMMAND ..."


Seconds = Annotated[float, Field(gt=0, le=31 * 24 * 3600, allow_inf_nan=False)]
Megabytes = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
"""A size in megabytes of 1,000,000 bytes."""


class BootLimits(Frozen):
    """The limits of a boot's time and output, after which it is ended as failed. Times are wall time of the host.

    Output beyond these limits is not kept.
    """

    boot: Seconds = 90.0
    """The time until the first record of the agent, in seconds."""
    silence: Seconds = 90.0
    """The time without a new record or a new byte on the console, in seconds. A boot that runs programs may be silent
    for as long as one of their steps may take: compilers and load generators print nothing while they work."""
    total: Seconds = 1800.0
    """The time for the whole boot, in seconds."""
    console_mb: Megabytes = 4.0
    """The output on the console, in megabytes."""
    stream_mb: Megabytes = 64.0
    """The records of the agent, in megabytes: all tests with 1000 iterations send 4, and a command that writes the most
    output that is kept, byte by byte, sends 56."""

    def for_programs(self, programs: Sequence[Program]) -> BootLimits:
        """Return the limits of a boot that runs these programs."""
        longest = float(max((program.seconds or 0 for program in programs), default=0))
        return self.model_copy(update={"silence": max(self.silence, min(longest, self.total))})


class MachineSettings(Frozen):
    """The settings of a machine in an experiment. Every kind of machine has a subclass with more settings."""

    starts_kernels: ClassVar[bool] = True
    """False: the machine uses the running kernel, so that variants can only contain settings of a running kernel."""

    arch: ClassVar[ArchName] = "x86_64"
    """The architecture of the kernels that it starts."""

    has_own_system: ClassVar[bool] = False
    """True: kernels start a system that is there already, with its root file system and their modules."""

    runner: ClassVar[Runner] = "agent"
    """What carries a workload out."""

    own_clock: ClassVar[Clock | None] = None
    """What samples are read in, where that is not the lane's clock; a clock of the core PMU is always the lane's."""

    type: str
    lane: LaneName = DEFAULT_LANE.name

    @property
    def box(self) -> str:
        """The name of another machine, which boots; empty: the host that opens it does."""
        return ""

    def located(self, base: Path) -> Self:
        """Return the settings with absolute paths; relative paths start from `base`. Raises NameUnfit."""
        raise NotImplementedError

    def at_least(self, needs: Needs, cpus: int = 1) -> Self:  # noqa: ARG002
        """The same machine with at least the memory that is needed and so many CPUs, where it can choose."""
        return self

    def with_pmu(self, pmu: PmuConfig) -> Self:  # noqa: ARG002
        """Return the machine in the model lane, counting with this emulated PMU. Raises NotEmulated."""
        raise NotEmulated(type=self.type)

    def pmu_settings(self) -> PmuConfig:
        """Return the settings of the emulated PMU; the default ones if the machine names none, or has none."""
        return PmuConfig()

    def in_timed_lane(self) -> Self:
        """Return the machine in the wall lane, only under KVM, with one CPU. Raises NotTimed."""
        raise NotTimed(type=self.type)

    def for_check_boot(self) -> Self:
        """Return the machine for a boot that measures nothing and may take long."""
        return self

    def describe_unreachable(self) -> Description:
        """Return the description of the machine without its facts; only for machines that can be out of reach."""
        raise NotImplementedError

    def requirement(self, needs: Needs) -> str:  # noqa: ARG002
        """Return what the machine must be to carry out a load with these needs, for people; empty: any host is."""
        return ""

    def with_platform_for(self, kernels: Sequence[tuple[Mapping[str, str], Sequence[str]]]) -> Self:  # noqa: ARG002
        """Return the machine on a platform that starts all these kernels, if it can choose. Each kernel is its
        configuration and the available modules.
        """
        return self

    def needed_kconfig(self) -> Mapping[str, KconfigValue]:
        """Return the symbols of Kconfig that kdyno's kernels must have for this machine, beside what its own base
        configuration has.
        """
        return {}

    def require_startable(
        self,
        config: Mapping[str, str],  # noqa: ARG002
        modules: Sequence[str],  # noqa: ARG002
        what: str,  # noqa: ARG002
        where: str,  # noqa: ARG002
        is_whole: bool = True,  # noqa: ARG002
    ) -> None:
        """Raise KernelNotStartable if a kernel cannot start here; `what` and `where` describe the kernel for people.

        Options that are missing in a configuration that isn't whole are unknown.
        """
        return

    def require_cpus(self, config: Mapping[str, str], what: str) -> None:  # noqa: ARG002
        """Raise CpusMissing if a kernel's configuration, as far as it is known, cannot use all of the machine's CPUs;
        `what` describes the kernel for people.
        """
        return


@dataclass(frozen=True)
class BootOrder:
    """The order for one boot."""

    name: str
    """The name for people and in names of files: `gcc-O2, block 3`."""
    kernel: Path | None
    """The bzImage; None if the machine needs none (a replay)."""
    cmdline: tuple[str, ...]
    """The kernel parameters of the variant; the machine adds its own."""
    job: Job
    seed: int
    """The seed, from 0 and below 2**31; the same for all variants of a block."""
    directory: Path
    """An empty directory; the machine writes console.log and stream.jsonl to it, and pmu.kpmu if it has a PMU."""
    vmlinux: Path | None = None
    """The vmlinux of the kernel; a machine with a PMU reads its symbols."""
    symbols: Path | None = None
    """The System.map of a vmlinux without symbols."""
    modules: Path | None = None
    """A tar archive of modules, each after its dependencies; a machine loads those that it needs."""
    variant: str = ""
    block: int = 0
    is_counted: bool = True
    """False: a machine with a PMU doesn't count, and leaves no record; the guest is the same."""
    plugin: tuple[str, ...] = ()
    """Arguments of QEMU for another plugin, which a machine loads if it doesn't count."""
    memory: Path | None = None
    """The file for the guest's memory, from its first byte on, as the boot leaves it: of a machine of QEMU's."""
    cancelled: Event = field(default_factory=Event)
    """Set by another thread to end the boot at once, as lost."""


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
    """Snapshots of an instrumented kernel's counters, if the boot is ok and its job requested them."""
    conditions: dict[str, float] = field(default_factory=dict)
    """The conditions of the host during the boot; see conditions.py. Empty if they don't matter."""
    advice: str = ""
    """A hint, if the machine has one."""
    started: datetime | None = None
    """When it was started, if another host did that."""
    host: str = ""
    """The host of a fleet that carried it out; empty: this one."""
    disturbance: str = ""
    """What other work on the host did to many samples: a run carries out such a boot again. Empty if it did little."""


@dataclass(frozen=True)
class Description:
    """The description of a machine before the first boot."""

    lane: LaneName
    parallel: int
    """The number of boots that can run in parallel without disturbing each other's samples."""
    facts: dict[str, Any]
    """All facts of the machine that determine the samples, as JSON values: part of the key of a boot."""
    host: dict[str, Any]
    """The CPU, memory, kernel and distribution of the host, as in kdyno.base.host."""
    limits: BootLimits | None = None
    """The limits of a boot. They are part of its key, though they don't affect the samples of an `ok` boot."""
    channel: Channel = field(default_factory=VirtioPort)
    """The channel of the agent's records to this machine."""
    icount_shift: int | None = None
    """Model lane: the speed of the guest's clock, for the agent."""
    shared: tuple[Path, ...] = ()
    """The directories of the host that every guest can read."""
    pmu: PmuConfig | None = None
    """The emulated PMU that counts every boot; None: there is none."""
    is_emulated: bool = False
    """The CPU is emulated: to a kernel that watches itself it looks slow, or as if it hung."""
    needs_images: bool = True
    """False: the machine boots no built kernels."""
    notices: tuple[str, ...] = ()
    """Notes that a reader must see first."""

    def job(
        self,
        iterations: int,
        *,
        tests: tuple[TestOrder, ...] = (),
        programs: tuple[Program, ...] = (),
        interactive: bool = False,
    ) -> Job:
        """Return a job for this machine, with the work of the agent."""
        return Job(
            lane=self.lane,
            icount_shift=self.icount_shift,
            channel=self.channel,
            iterations=iterations,
            tests=tests,
            programs=programs,
            interactive=interactive,
        )


@runtime_checkable
class HoldsBox(Protocol):
    """A machine that holds a box beyond the end of a boot, until the process ends or lets it go."""

    def let_go(self) -> None:
        """Give the box back: others may have it."""
        ...


class MachineBackend(Protocol):
    """A machine on which images boot."""

    def describe(self) -> Description:
        """Examine and describe the machine. Raises KdynoError if it cannot boot anything."""
        ...

    def cpu(self) -> Cpu:
        """Return the CPU of the host that boots, for which `march = "auto"` compiles. Raises NoCpuinfo."""
        ...

    def require_cpu(self, flags: Sequence[str], what: str) -> None:
        """Raise CpuLacks unless the guest's CPU has all these flags of /proc/cpuinfo; `what` describes their user."""
        ...

    def require_options(self, kernel: Path, output: Output) -> None:
        """Raise UserError if the kernel, by its configuration if known, cannot send this output out of a guest."""
        ...

    def require_cmdline(self, words: Sequence[str], what: str) -> None:
        """Raise KdynoError for kernel parameters that the machine cannot apply; `what` describes their user."""
        ...

    def provide(self, needs: Needs, state: State, talk: Talk) -> None:
        """Provide every boot with the programs of the needed Debian packages, with the members of archives in them,
        and with the files that guests share. Raises KdynoError if that is impossible.
        """
        ...

    def stand_in(self, variant: str, block: int) -> str:
        """Return a digest that identifies a boot in place of an image, if the machine needs no image."""
        ...

    def boot(self, order: BootOrder) -> BootEnd:
        """Carry out one boot. A failure of the kernel is a BootEnd, not an exception."""
        ...

    def converse(self, order: BootOrder) -> int:
        """Boot with the console on this terminal, for a person; return an exit status. Raises NoShell."""
        ...
