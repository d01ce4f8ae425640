"""The settings of the machine `qemu` in an experiment, and checks of their combinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field

from kdyno.base.errors import UserError
from kdyno.base.lanes import COUNTED_LANE, DEFAULT_LANE, LANES, TIMED_LANE, GuestLaneName
from kdyno.base.names import absolute
from kdyno.boot.base import BootLimits, MachineSettings
from kdyno.boot.disk import MOST_DISK_MB, NEED
from kdyno.boot.platforms import MENUS, NEEDS, Need, Platform, lacks, require_cpus, require_startable
from kdyno.boot.pmu import PmuOutsideModelLane, located_pmu
from kdyno.kernel.recipe import KconfigValue
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.workload.needs import Needs

MOST_MEMORY_MB = 1 << 20
"""The largest memory of a guest: 1 TiB."""


class QemuConfig(MachineSettings):
    """A guest under QEMU, on this host."""

    type: Literal["qemu"] = "qemu"
    lane: GuestLaneName = DEFAULT_LANE.name
    """`model`: TCG with -icount, exact and repeatable; `wall`: time."""
    accel: Literal["auto", "kvm", "tcg"] = "auto"
    """Wall lane: `auto` uses KVM if a proof succeeds here, otherwise TCG, with a notice."""
    platform: Platform = "microvm"
    """`microvm` boots fastest; `q35` is for kernels without virtio-mmio. By default built kernels (`image`) decide."""
    cpu: str | None = None
    """QEMU's CPU model; None: in the model lane that of `pmu`'s family, or of the default one, with the kernel
    parameters for features that QEMU can't show; in the wall lane `host` under KVM, `max` under TCG."""
    cpus: Annotated[int, Field(ge=1, le=64)] = 1
    memory_mb: Annotated[int, Field(ge=64, le=MOST_MEMORY_MB)] = 512
    icount_shift: Annotated[int, Field(ge=0, le=10)] = 5
    """Model lane: one instruction takes 2**shift ns of the guest's time. It is constant within a study."""
    pmu: PmuConfig | None = None
    """Model lane: count the measured loops with the emulated PMU; without it samples are instructions of all code."""
    disk_mb: Annotated[int, Field(ge=1, le=MOST_DISK_MB)] | None = None
    """The size in MiB of an empty disk on virtio-blk, new for each boot; None: no disk. Only in the wall lane."""
    share: Path | None = None
    """A directory of the host that the guest can mount, read-only, as the 9p tag `host`."""
    limits: BootLimits = BootLimits()

    def located(self, base: Path) -> Self:
        share = Path(absolute(self.share, base)) if self.share else None
        return self.model_copy(update={"share": share, "pmu": located_pmu(self.pmu, base)})

    def at_least(self, needs: Needs, cpus: int = 1) -> Self:
        cpus = max(self.cpus, 1 if LANES[self.lane].is_icount else cpus)
        return self.model_copy(update={"memory_mb": max(self.memory_mb, needs.memory_mb or 0), "cpus": cpus})

    def with_pmu(self, pmu: PmuConfig) -> Self:
        return self.model_copy(update={"lane": COUNTED_LANE.name, "accel": "auto", "cpus": 1, "pmu": pmu})

    def pmu_settings(self) -> PmuConfig:
        return self.pmu or PmuConfig()

    def in_timed_lane(self) -> Self:
        return self.model_copy(update={"lane": TIMED_LANE.name, "accel": "kvm", "cpus": 1, "pmu": None})

    def with_platform_for(self, kernels: Sequence[tuple[Mapping[str, str], Sequence[str]]]) -> Self:
        if "platform" in self.model_fields_set:
            return self

        def fits(platform: Platform) -> bool:
            return not any(lacks(config, platform, "stream", self.more_needs, has) for config, has in kernels)

        return self.model_copy(update={"platform": next(filter(fits, NEEDS), self.platform)})

    def needed_kconfig(self) -> Mapping[str, KconfigValue]:
        platforms = [self.platform] if "platform" in self.model_fields_set else [*NEEDS]
        needs = [need for platform in platforms for need in (*NEEDS[platform], *self.more_needs)]
        return {need.symbol: True for need in (*MENUS, *needs) if need.output in (None, "stream")}

    def require_startable(
        self, config: Mapping[str, str], modules: Sequence[str], what: str, where: str, is_whole: bool = True
    ) -> None:
        require_startable(config, modules, self.platform, self.more_needs, what, where, is_whole)

    @property
    def more_needs(self) -> tuple[Need, ...]:
        """Of a kernel, beside what every guest needs."""
        return () if self.disk_mb is None else (NEED,)

    def require_cpus(self, config: Mapping[str, str], what: str) -> None:
        require_cpus(config, self.cpus, what)

    def for_check_boot(self) -> Self:
        # One instruction takes 1 ns of the guest's time: the kernel's limits on time are made for fast CPUs.
        limits = self.limits.model_copy(update={"boot": self.limits.total, "silence": self.limits.total})
        return self.model_copy(update={"icount_shift": 0, "limits": limits})


class KvmInModelLane(UserError):
    message = 'accel = "kvm" cannot be combined with lane = "model": the model lane is emulated'
    hint = 'set lane = "wall" for times under KVM'


class ModelLaneIsUniprocessor(UserError):
    message = "the model lane has one CPU, but the experiment has cpus = {cpus}"
    hint = 'remove `cpus`, or set lane = "wall"'


class DiskOutsideWallLane(UserError):
    message = (
        "disk_mb cannot be combined with the lane {lane}: the disk's time is that of the host, and boots would differ"
    )
    hint = (
        'set lane = "wall", or remove `disk_mb` and make a disk of the guest\'s memory '
        "(CONFIG_BLK_DEV_RAM=y, /dev/ram0)"
    )


def require_one_lane(config: QemuConfig) -> None:
    """Raise KvmInModelLane, ModelLaneIsUniprocessor, PmuOutsideModelLane or DiskOutsideWallLane."""
    lane = LANES[config.lane]
    if lane.is_icount and config.accel == "kvm":
        raise KvmInModelLane()
    if lane.is_icount and config.cpus > 1:
        raise ModelLaneIsUniprocessor(cpus=config.cpus)
    if config.pmu and not lane.is_icount:
        raise PmuOutsideModelLane(lane=config.lane)
    if lane.is_repeatable and config.disk_mb is not None:
        raise DiskOutsideWallLane(lane=config.lane)
