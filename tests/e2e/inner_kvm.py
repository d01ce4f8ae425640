"""Runs inside a guest that is a KVM host: boots a kernel with the machine `qemu` under KVM and prints what came of it.

Usage: python inner_kvm.py BZIMAGE SCRATCH
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

from kdyno.boot.base import BootLimits, BootOrder
from kdyno.boot.qemu import KvmUnusable, QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.measure.guest.job import Job, TestOrder

CONFIG = QemuConfig(lane="wall", accel="kvm", memory_mb=256, limits=BootLimits(boot=300, silence=300))
PROOFS = 4


def proven() -> QemuMachine:
    """A machine whose KVM was proven; on a host that is itself emulated, on a busy one, that may take some tries."""
    for _ in range(PROOFS - 1):
        machine = QemuMachine(CONFIG)
        with suppress(KvmUnusable):
            machine.describe()
            return machine
    return QemuMachine(CONFIG)


machine = proven()
about = machine.describe()
job = Job(lane="wall", iterations=3, tests=(TestOrder(name="lat_syscall"),))
end = machine.boot(BootOrder("inner", Path(sys.argv[1]), (), job, 1, Path(sys.argv[2])))
print(
    json.dumps(
        {
            "accel": about.facts["accel"],
            "notices": about.notices,
            "status": end.status,
            "reason": end.reason,
            "command": end.command,
            "units": sorted({benchmark.unit for benchmark in end.report.benchmarks}),
            "benchmarks": sorted({sample.benchmark for sample in end.report.samples}),
        }
    )
)
