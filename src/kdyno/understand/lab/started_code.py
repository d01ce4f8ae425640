"""The code of a kernel that has started: a vmlinux with the bytes that were in a guest's memory when its boot ended.

A kernel for x86-64 patches itself at its start: ALTERNATIVEs for its processor, calls of the tracer, returns, static
branches. QEMU keeps the guest's memory in a file, so that neither the guest nor a debugger is asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.qemu import cpu_of
from kdyno.boot.registry import default_machine, open_machine
from kdyno.kernel.arch import ARCHES
from kdyno.kernel.boot_tests import disable_boot_tests
from kdyno.kernel.image import Image
from kdyno.kernel.images import configuration_of
from kdyno.kernel.vmlinux.checks import PF_W, PF_X, segments, vmlinux_bytes
from kdyno.measure.guest.job import Program
from kdyno.runs.one_boot import BootRequest

FIXED = ("nokaslr",)
"""The kernel lies where its vmlinux says."""
FLAGS = re.compile(r"^flags\s*:([^\n]*)", re.MULTILINE)
MOST_CHANGED = 0.5
"""The share of its code that a kernel may patch: Debian's 6.1 changes 10 %, kdyno's 6.12 1.6 %. Of other memory nearly
all differs.
"""
NEEDED_MB = 1000
"""Megabytes of free space for the guest's memory and a vmlinux."""


class PatchesNoCode(UserError):
    message = "the kernel of image {image} is a process (ARCH={arch}), and patches nothing when it starts"
    hint = "leave out --started: its routines are proven as they are in its file"


class NotStarted(InfrastructureError):
    message = "the boot that shows the code of image {image} failed: {why}"
    hint = "see if the kernel boots: kdyno boot {image} --lane model -- true"


class CodeElsewhere(InfrastructureError):
    message = "the memory of the guest isn't the code of image {image}: {share:.0%} of it differs"
    hint = "the kernel wasn't loaded where its vmlinux says; report this with its configuration"


@dataclass(frozen=True)
class StartedCode:
    """The code of a kernel that has started."""

    vmlinux: Path
    """A copy of the kernel's, with that code."""
    cpu: str
    """QEMU's CPU model that the kernel patched itself for."""
    flags: frozenset[str]
    """The flags of that CPU, as the guest's /proc/cpuinfo has them."""
    changed: int
    """Bytes that differ from the kernel's file."""
    size: int
    """All of these bytes."""

    @property
    def sentence(self) -> str:
        model, *features = self.cpu.split(",")
        less = f" with {len(features)} features set" if features else ""
        return (
            f"as it was in memory after a start on QEMU's CPU {model}{less}: {self.changed:,} of {self.size:,} bytes "
            "of code are other ones than in its file"
        )


def started_code(image: Image, cpu: str | None, seed: int, directory: Path, state: State, talk: Talk) -> StartedCode:
    """Boot an image on QEMU's CPU model, kdyno's own if it is None, and return its code as it was at the end.

    The copy of the vmlinux is in `directory`. Raises PatchesNoCode, NotStarted, CodeElsewhere, NotAVmlinux and what the
    machine raises.
    """
    key, arch = image.record.key[:12], image.record.arch
    if not ARCHES[arch].is_packed:
        raise PatchesNoCode(image=key, arch=arch)
    config = configuration_of(image)
    settings = default_machine(cpu=cpu) if cpu else default_machine()
    settings = settings.with_platform_for([(config, image.record.modules)])
    machine = open_machine(settings)
    state.require_space(NEEDED_MB)
    machine.require_cpu(image.record.needs, f"image {key}")
    about = machine.describe()
    words = (*FIXED, *disable_boot_tests((), config))
    job = about.job(1, programs=(Program(name="cpu", command=("cat", "/proc/cpuinfo")),))
    request = BootRequest(f"image {key}", image, words, job, seed, is_counted=False)
    boot, memory = directory / "boot", directory / "memory"
    boot.mkdir()
    with talk.working(f"starting image {key}"):
        end = machine.boot(replace(request.order(boot), memory=memory))
    flags = FLAGS.search(end.report.steps[0].stdout.decode(errors="replace")) if end.status == "ok" else None
    if flags is None:
        raise NotStarted(image=key, why=end.reason or "the guest has no /proc/cpuinfo")
    data, changed, size = with_code_of(vmlinux_bytes(image.vmlinux), image.vmlinux, memory)
    memory.unlink()
    if not size or changed > MOST_CHANGED * size:
        raise CodeElsewhere(image=key, share=changed / size if size else 1.0)
    vmlinux = directory / "vmlinux"
    vmlinux.write_bytes(data)
    return StartedCode(vmlinux, cpu_of(settings) or "", frozenset(flags[1].split()), changed, size)


def with_code_of(data: bytes, vmlinux: Path, memory: Path) -> tuple[bytes, int, int]:
    """Return a vmlinux with the code that is in memory, the bytes of it that differ, and their number.

    Segments that can be executed and not written are code: the others change as a kernel runs. Raises NotAVmlinux.
    """
    file = np.frombuffer(data, np.uint8).copy()
    ram = np.memmap(memory, np.uint8, mode="r")
    changed = whole = 0
    for flags, start, _, physical, size in segments(data, vmlinux):
        if flags & (PF_X | PF_W) != PF_X:
            continue
        there = ram[physical : physical + size]
        here = file[start : start + len(there)]
        changed += int(np.count_nonzero(here != there[: len(here)])) + size - len(here)
        whole += size
        here[:] = there[: len(here)]
    return file.tobytes(), changed, whole
