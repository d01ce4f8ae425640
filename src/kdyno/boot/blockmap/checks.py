"""Checks of /proc and /sys before a mapping: the file system, the disk, and the users of the file.

Every reader takes a root, so that a tree of files can represent a host.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.boot.host import files

FIT = ("ext2", "ext3", "ext4", "xfs", "vfat", "msdos")
"""File systems on one block device that move the blocks of a file only on request."""

FS_COMPR_FL, FS_ENCRYPT_FL, FS_JOURNAL_DATA_FL, FS_VERITY_FL = 0x4, 0x800, 0x4000, 0x100000
UNFIT_FLAGS = {
    FS_ENCRYPT_FL: "encrypted by the file system",
    FS_COMPR_FL: "compressed by the file system",
    FS_VERITY_FL: "protected by fs-verity, which would detect changes",
    FS_JOURNAL_DATA_FL: "written through the journal (chattr +j), which may write old data later",
}
"""The flags of files, as in chattr (include/uapi/linux/fs.h)."""

ESCAPED = re.compile(r"\\([0-7]{3})")
DELETED = " (deleted)"


class NotRegular(UserError):
    message = "{file} is not a regular file"
    hint = "name a regular file on a disk"


class SizeUnfit(UserError):
    message = "{file} has {size} bytes: expected a multiple of {unit} above 0"
    hint = "round its size up with `truncate -s %{unit} FILE`, and write the new bytes, which are otherwise a hole"


class FileSystemUnfit(UserError):
    message = "{file} is on {kind}, which may move blocks or use several disks"
    hint = "move it to one of: {fit}"


class FileSystemUnknown(UserError):
    message = "{file} is on a file system that is not in /proc/self/mountinfo (device {device})"
    hint = "move it to one of: {fit}"


class DataJournalled(UserError):
    message = "{file} is on a file system that is mounted with data=journal, which may write old data later"
    hint = "mount it without data=journal"


class NotOnDisk(UserError):
    message = "{file} is on device {device}, which is not a block device of this host"
    hint = "move it to a file system on a disk"


class FlagsUnfit(UserError):
    message = "{file} is {why}"
    hint = "copy the file to a file system that stores it unchanged"


class OnRealtimeDevice(UserError):
    message = "{file} is on the realtime device of its file system, which is not in /proc or /sys"
    hint = "copy it to a directory whose files are on the data device (`xfs_io -c lsattr`)"


class IsSwap(UserError):
    message = "{file} is a swap file in use"
    hint = "stop the swapping with `sudo swapoff FILE`"


class BacksLoop(UserError):
    message = "{file} is the disk behind /dev/{loop}"
    hint = "unmount /dev/{loop}, and detach the file with `sudo losetup -d /dev/{loop}`"


class FileInUse(UserError):
    message = "{file} is {how} in process {pid} ({name})"
    hint = "stop that process: its cached writes would exist in two places"


class InUseUnseen(UserError):
    message = "{file} is open in a place that kdyno cannot see"
    hint = "run it with sudo; it may also be in use by the kernel (loop device, NFS server) or in another container"


@dataclass(frozen=True)
class FileIdentity:
    """The identity of a file: device (st_dev) and inode. A file may have several names."""

    device: int
    inode: int

    @staticmethod
    def read(path: Path) -> FileIdentity | None:
        """Return the identity of the target of a path; None if there is none."""
        try:
            status = path.stat()
        except (OSError, ValueError):
            return None
        return FileIdentity(status.st_dev, status.st_ino)

    @property
    def number(self) -> str:
        """Return the device as MAJOR:MINOR."""
        return f"{os.major(self.device)}:{os.minor(self.device)}"


@dataclass(frozen=True)
class Mount:
    device: str
    point: str
    kind: str
    options: tuple[str, ...]
    """The options of the file system, not only of the mount."""


@dataclass(frozen=True)
class Disk:
    """A block device."""

    sectors: int
    """The number of sectors of 512 bytes."""
    unit: int
    """The smallest number of bytes that the device reads or writes."""


@dataclass(frozen=True)
class User:
    """A process that has opened or mapped the file."""

    pid: int
    name: str
    how: str


@dataclass(frozen=True)
class Users:
    processes: tuple[User, ...]
    unseen: int
    """The number of processes that this one may not examine."""


def mounts(root: Path) -> Iterator[Mount]:
    """Yield the lines of /proc/self/mountinfo (proc_pid_mountinfo(5))."""
    for line in (files.text(root / "proc/self/mountinfo") or "").splitlines():
        mount_part, separator, system_part = line.partition(" - ")
        mount_fields, system_fields = mount_part.split(), system_part.split()
        if separator and len(mount_fields) > 4 and len(system_fields) > 2:
            yield Mount(
                mount_fields[2], _unescape(mount_fields[4]), system_fields[0], tuple(system_fields[2].split(","))
            )


def file_system(root: Path, file: Path, identity: FileIdentity) -> str:
    """Return the kind of a file's file system. Raises FileSystemUnfit, FileSystemUnknown, DataJournalled."""
    all_mounts = list(mounts(root))
    mount = next((mount for mount in all_mounts if mount.device == identity.number), None)
    fit = ", ".join(FIT)
    if mount is None:
        # Files of btrfs and overlay have their own device numbers; the mount point identifies the file system.
        enclosing = [mount for mount in all_mounts if file.is_relative_to(mount.point)]
        nearest = max(enclosing, key=lambda mount: len(mount.point), default=None)
        if nearest is None or nearest.kind in FIT:
            raise FileSystemUnknown(file=file, device=identity.number, fit=fit)
        raise FileSystemUnfit(file=file, kind=nearest.kind, fit=fit)
    if mount.kind not in FIT:
        raise FileSystemUnfit(file=file, kind=mount.kind, fit=fit)
    if "data=journal" in mount.options:
        raise DataJournalled(file=file)
    return mount.kind


def disk(root: Path, file: Path, identity: FileIdentity) -> Disk:
    """Return the block device of a file's file system. Raises NotOnDisk."""
    directory = root / "sys/dev/block" / identity.number
    sectors = files.number(directory / "size")
    if sectors is None:
        raise NotOnDisk(device=identity.number, file=file)
    real = directory.resolve()  # a partition has the queue of its disk
    units = (files.number(place / "queue/logical_block_size") for place in (real, real.parent))
    return Disk(sectors, next((unit for unit in units if unit), 512))


def require_size(file: Path, size: int, unit: int) -> None:
    """Raise SizeUnfit unless the size is a positive multiple of the disk's unit."""
    if size == 0 or size % unit:
        raise SizeUnfit(file=file, size=size, unit=unit)


def require_plain(file: Path, flags: int | None) -> None:
    """Raise FlagsUnfit if, by its flags, the file is stored on disk in another form than it is read."""
    for flag, why in UNFIT_FLAGS.items():
        if (flags or 0) & flag:
            raise FlagsUnfit(file=file, why=why)


def require_no_swap(root: Path, file: Path, identity: FileIdentity) -> None:
    """Raise IsSwap if the file is used as swap."""
    for line in (files.text(root / "proc/swaps") or "").splitlines()[1:]:
        area = _unescape(line.split()[0]) if line.strip() else ""
        if FileIdentity.read(Path(area.removesuffix(DELETED))) == identity:
            raise IsSwap(file=file)


def require_no_loop(root: Path, file: Path, identity: FileIdentity) -> None:
    """Raise BacksLoop if the file is the disk behind a loop device."""
    for backing in files.matching(root / "sys/block", "loop*/loop/backing_file"):
        backing_path = files.text(backing)
        if backing_path and FileIdentity.read(Path(backing_path.removesuffix(DELETED))) == identity:
            raise BacksLoop(file=file, loop=backing.parent.parent.name)


def find_users(root: Path, identity: FileIdentity, own_descriptor: int) -> Users:
    """Return the processes that have opened or mapped the file, except this one by its own file descriptor."""
    users: list[User] = []
    unseen = 0
    for process in files.processes(root):
        pid = int(process.name)
        skip = str(own_descriptor) if pid == os.getpid() else ""
        try:
            how = "open" if _opens(process, identity, skip) else "mapped" if _maps(process, identity) else ""
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        except OSError:
            unseen += 1
            continue
        if how:
            users.append(User(pid, files.text(process / "comm") or "?", how))
    return Users(tuple(users), unseen)


def require_unused(
    root: Path, file: Path, identity: FileIdentity, own_descriptor: int, is_open_elsewhere: bool | None
) -> int:
    """Return the number of processes that couldn't be examined. Raises FileInUse and InUseUnseen.

    `is_open_elsewhere` is whether the kernel reports another open file; None if it doesn't report it.
    """
    users = find_users(root, identity, own_descriptor)
    if users.processes:
        user = users.processes[0]
        raise FileInUse(file=file, how=user.how, pid=user.pid, name=user.name)
    if is_open_elsewhere:
        raise InUseUnseen(file=file)
    return users.unseen


def _opens(process: Path, identity: FileIdentity, skip: str) -> bool:
    return any(
        name != skip and FileIdentity.read(process / "fd" / name) == identity
        for name in os.listdir(process / "fd")  # noqa: PTH208
    )


def _maps(process: Path, identity: FileIdentity) -> bool:
    """Return whether a process maps the file.

    Lines of /proc/PID/maps have addresses, rights, offset, device (hexadecimal), inode, path.
    """
    device_and_inode = [f"{os.major(identity.device):02x}:{os.minor(identity.device):02x}", str(identity.inode)]
    with (process / "maps").open(encoding="utf-8", errors="replace") as maps:
        return any(line.split(maxsplit=5)[3:5] == device_and_inode for line in maps)


def _unescape(name: str) -> str:
    """Decode a name in which the kernel wrote white space as `\\040`."""
    return ESCAPED.sub(lambda code: chr(int(code[1], 8)), name)
