"""The settings of the machine `metal`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from kdyno.base.lanes import BOX_CLOCK, TIMED_LANE, Clock, RealTimeLaneName
from kdyno.base.names import absolute
from kdyno.boot.base import BootLimits, Description, MachineSettings
from kdyno.measure.guest.job import FileChannel
from kdyno.measure.workload.needs import Needs

Command = Annotated[tuple[Annotated[str, Field(pattern=r"^[^\x00]+$", max_length=4096)], ...], Field(max_length=100)]
"""A program of this host and its arguments; no shell reads it."""
KnobName = Literal["governor", "energy", "turbo", "nmi-watchdog", "perf-rate", "smt", "thp"]
STREAM = "/dev/stdout"
SHARED_DISK = "programs of the workload, and files that they write, are those of the box: kdyno installs nothing there"


class MetalConfig(MachineSettings):
    """The settings of a box that is reached by ssh."""

    own_clock: ClassVar[Clock | None] = BOX_CLOCK
    has_own_system: ClassVar[bool] = True

    type: Literal["metal"] = "metal"
    lane: RealTimeLaneName = TIMED_LANE.name
    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,252}$")]
    """The box as `ssh` takes it: a name of the user's ssh configuration, or USER@HOST."""
    ssh_config: Path | None = None
    """The configuration file for ssh; None: the user's own."""
    boot: Literal["kexec", "firmware"] = "kexec"
    """How kernels are started."""
    knobs: tuple[KnobName, ...] = ()
    """Host knobs of the box that are set for measuring, in each boot."""
    reset: Command = ()
    """The command of this host that resets a box that hangs; empty: there is none."""
    console: Command = ()
    """The command of this host that prints the box's console; empty: the kernel's messages are read by ssh."""
    limits: BootLimits = BootLimits(boot=300.0, total=7200.0)
    """`boot` is also the most seconds of a restart."""

    @property
    def box(self) -> str:
        return self.host

    def located(self, base: Path) -> Self:
        if self.ssh_config is None:
            return self
        return self.model_copy(update={"ssh_config": Path(absolute(self.ssh_config, base))})

    def description(self, facts: dict[str, Any], host: dict[str, Any]) -> Description:
        return Description(
            lane=self.lane,
            parallel=1,
            facts={"type": self.type, "host": self.host, "boot": self.boot, **facts},
            host=host,
            limits=self.limits,
            channel=FileChannel(path=STREAM),
            notices=(SHARED_DISK,),
        )

    def describe_unreachable(self) -> Description:
        return self.description({}, {})

    def requirement(self, needs: Needs) -> str:
        way = "kexec" if self.boot == "kexec" else "systemd-boot or GRUB"
        packages = f", with the Debian packages {', '.join(needs.packages)}" if needs.packages else ""
        return f"{self.host}, a box of {self.arch} with systemd and {way} that ssh reaches as root{packages}"
