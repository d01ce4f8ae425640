"""Which of a kernel's modules a guest loads: those of its devices, and of the file systems that its programs need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kdyno.base.plain_tar import TarLimits, files
from kdyno.boot.platforms import Platform
from kdyno.boot.qemu_config import QemuConfig
from kdyno.kernel.built_kernels.modules import MOST_BYTES, MOST_MODULES, in_order
from kdyno.measure.guest.job import Job

TRANSPORTS: dict[Platform, str] = {"microvm": "virtio_mmio", "q35": "virtio_pci"}
LIMITS = TarLimits(files=MOST_MODULES, file_bytes=MOST_BYTES, total_bytes=1_000_000_000)


def loaded(archive: Path, config: QemuConfig, job: Job) -> dict[str, bytes]:
    """The modules that this guest loads, by name, each after what it needs; what is built in is not among them.

    Raises ArchiveDamaged and ModuleUnfit.
    """
    with archive.open("rb") as tar:
        contents = {name.removesuffix(".ko"): content for name, content in files(tar.read, LIMITS, archive.name)}
    return {name: contents[name] for name in in_order(wanted(config, job), contents)}


def wanted(config: QemuConfig, job: Job) -> Iterator[str]:
    """The modules for a guest's devices and programs, without what these depend on. Pure."""
    yield TRANSPORTS[config.platform]
    yield "virtio_console"
    if config.disk_mb is not None:
        yield "virtio_blk"
    if config.share:
        yield "9p"
        yield "9pnet_virtio"
    if any(program.in_root for program in job.programs):
        yield from ("loop", "squashfs", "overlay")
