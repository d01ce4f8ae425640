"""A disk for one boot: a new, sparse file of the host, which a guest has on virtio-blk and which ends with the boot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kdyno.base.errors import InfrastructureError
from kdyno.boot.platforms import Need, Platform

DISK = "disk.img"
"""In the boot's directory."""
SERIAL = "scratch"
"""What the guest reads in /sys/block/vda/serial."""
MOST_DISK_MB = 1 << 20
"""A TiB."""
MIB = 1 << 20
CACHE = "none"
"""As QEMU calls it: the host's page cache is passed by (O_DIRECT), and a flush of the guest's is one of the host's.
With any other mode the host's memory would be the disk."""
NEED = Need("VIRTIO_BLK", "the disk of `disk_mb` is on virtio-blk")


class NoRoomForDisk(InfrastructureError):
    message = "a disk of {megabytes:,} MiB for the guest doesn't fit into {directory}, which has {free:,} MiB left"
    hint = "lower `disk_mb` in [machine], free some space, or name another state directory (--state)"


class DiskNotDirect(InfrastructureError):
    message = "a disk for the guest can't lie in {directory}: its file system has no O_DIRECT ({why})"
    hint = "name a state directory on a disk (--state); tmpfs is none"


@contextmanager
def new_disk(directory: Path, megabytes: int | None, spare: int) -> Iterator[None]:
    """A disk of so many MiB in a boot's directory, while the body runs; None: no disk.

    The whole disk and `spare` bytes must fit, though a guest may never fill it. Raises NoRoomForDisk and DiskNotDirect.
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
    """What gives QEMU the disk. What the host refuses is an error of the guest's disk: QEMU would stop the guest.

    QEMU would merge requests that come close after each other; and before 8.1 it fails those of 1023 pieces that aren't
    aligned as the host's disk is.
    """
    path = str(directory / DISK).replace(",", ",,")
    device = "virtio-blk-device" if platform == "microvm" else "virtio-blk-pci"
    settings = "write-cache=on,request-merging=off,rerror=report,werror=report"
    return [
        *("-blockdev", f"driver=file,node-name=disk-file,filename={path},cache.direct=on"),
        *("-blockdev", "driver=raw,node-name=disk,file=disk-file,cache.direct=on"),
        *("-device", f"{device},drive=disk,serial={SERIAL},{settings}"),
    ]
