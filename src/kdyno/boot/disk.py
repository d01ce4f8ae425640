"""A disk for one boot: a new, sparse file of the host on virtio-blk, which is removed after the boot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kdyno.base.errors import InfrastructureError
from kdyno.boot.platforms import Need, Platform

DISK = "disk.img"
"""The name of the file in the boot's directory."""
SERIAL = "scratch"
"""The serial number in /sys/block/vda/serial of the guest."""
MOST_DISK_MB = 1 << 20
"""The largest disk, in MiB: 1 TiB."""
MIB = 1 << 20
CACHE = "none"
"""QEMU's cache mode: the host's page cache is bypassed (O_DIRECT), and a flush by the guest flushes the host's disk.
In any other mode the disk would be in the host's memory."""
NEED = Need("VIRTIO_BLK", "the disk of `disk_mb` is on virtio-blk")


class NoRoomForDisk(InfrastructureError):
    message = "a disk of {megabytes:,} MiB for the guest does not fit into {directory}, which has {free:,} MiB free"
    hint = "lower `disk_mb` in [machine], free some space, or name another state directory (--state)"


class DiskNotDirect(InfrastructureError):
    message = "a disk for the guest cannot be in {directory}: its file system does not support O_DIRECT ({why})"
    hint = "name a state directory on a disk (--state), not on tmpfs"


@contextmanager
def new_disk(directory: Path, megabytes: int | None, spare: int) -> Iterator[None]:
    """Create a disk of so many MiB in a boot's directory while the body runs; None: no disk.

    The whole disk and `spare` bytes must fit, even if a guest doesn't fill it. Raises NoRoomForDisk and DiskNotDirect.
    """
    if megabytes is None:
        yield
        return
    free = shutil.disk_usage(directory).free
    if free < megabytes * MIB + spare:
        raise NoRoomForDisk(megabytes=megabytes, directory=directory, free=free // MIB)
    path = directory / DISK
    try:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_DIRECT, 0o600)
        except OSError as error:
            raise DiskNotDirect(directory=directory, why=error.strerror) from error
        try:
            os.truncate(file, megabytes * MIB)
        finally:
            os.close(file)
        yield
    finally:
        path.unlink(missing_ok=True)


def disk_words(directory: Path, platform: Platform) -> list[str]:
    """Return QEMU's options for the disk. Errors of the host become errors of the guest's disk; else QEMU would stop.

    Merging of requests is off: QEMU would merge adjacent requests, and before 8.1 it fails requests of 1023 pieces that
    aren't aligned like the host's disk.
    """
    path = str(directory / DISK).replace(",", ",,")
    device = "virtio-blk-device" if platform == "microvm" else "virtio-blk-pci"
    settings = "write-cache=on,request-merging=off,rerror=report,werror=report"
    return [
        *("-blockdev", f"driver=file,node-name=disk-file,filename={path},cache.direct=on"),
        *("-blockdev", "driver=raw,node-name=disk,file=disk-file,cache.direct=on"),
        *("-device", f"{device},drive=disk,serial={SERIAL},{settings}"),
    ]
