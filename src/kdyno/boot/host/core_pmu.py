"""Whether a kernel drives the core PMU: the processor's own, not the emulated one."""

from __future__ import annotations

from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.lanes import LANES, TIMED_LANE, LaneName

DEVICES = "sys/bus/event_source/devices"
PLACES = (f"{DEVICES}/cpu/type", f"{DEVICES}/cpu_core/type")
"""One of these files is there where a kernel for x86 drives the core PMU; the second one on a hybrid processor
(arch/x86/events/core.c and intel/core.c of Linux)."""


class CorePmuMissing(UserError):
    message = "the lane {lane} needs a PMU of the processor, and the kernel of {host} drives none: /{place} is missing"
    hint = (
        'set lane = "{other}" in [machine]; or, if {host} is a virtual machine, give it a virtual PMU (QEMU under KVM: '
        "-cpu host,pmu=on)"
    )


def require_core_pmu(lane: LaneName, host: str, root: Path) -> None:
    """Raise CorePmuMissing if the lane's clock is a counter of the core PMU, which the kernel of the host with these
    files doesn't drive.
    """
    if LANES[lane].uses_core_pmu and not any((root / place).is_file() for place in PLACES):
        raise CorePmuMissing(lane=lane, host=host, place=PLACES[0], other=TIMED_LANE.name)
