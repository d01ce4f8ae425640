"""What this host offers to a fleet."""

from __future__ import annotations

import shutil
import socket

from kdyno.base.cpu import NoCpuinfo, family_of, read_cpu
from kdyno.base.errors import KdynoError
from kdyno.base.host import host_facts
from kdyno.base.state import MEGABYTE, State
from kdyno.boot.kvm import why_not_kvm
from kdyno.boot.qemu import QEMU
from kdyno.boot.registry import MACHINES
from kdyno.fleet.queue.model import Kind, Offer
from kdyno.kernel import toolchain


def host_name() -> str:
    """Return the name of this host."""
    return socket.gethostname() or "localhost"


def make_offer(slots: dict[Kind, int], state: State) -> Offer:
    """Look at this host, and return what it offers with these slots."""
    family, name = "", ""
    try:
        cpu = read_cpu()
    except NoCpuinfo:
        pass
    else:
        found = family_of(cpu)
        family, name = found.name if found else "", cpu.name
    return Offer(
        slots=slots,
        kvm=_has_kvm(),
        family=family,
        cpu=name,
        memory_mb=int(host_facts().get("memory_mb") or 0),
        disk_mb=shutil.disk_usage(state.images).free // MEGABYTE,
        toolchains=tuple(_toolchains(state)) if slots.get("build") else (),
        machines=tuple(MACHINES),
    )


def _has_kvm() -> bool:
    try:
        return why_not_kvm(QEMU) is None
    except KdynoError:  # there is no QEMU
        return False


def _toolchains(state: State) -> list[str]:
    found = []
    for name in toolchain.installed():
        try:
            found.append(f"{name} {toolchain.find(name, state).identity.version}")
        except KdynoError:  # half of a compiler
            continue
    return found
