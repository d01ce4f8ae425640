"""What /proc and /sys say against a mapping: the file system, the disk, and who uses the file.

Every reader takes a root, so that a tree of files can stand for a host.
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
"""File systems on one block device that leave a file's blocks where they are unless they are asked to move them."""

FS_COMPR_FL, FS_ENCRYPT_FL, FS_JOURNAL_DATA_FL, FS_VERITY_FL = 0x4, 0x800, 0x4000, 0x100000
UNFIT_FLAGS = {
    FS_ENCRYPT_FL: "encrypted by the file system",
    FS_COMPR_FL: "compressed by the file system",
    FS_VERITY_FL: "protected by fs-verity, which would find it changed",
    FS_JOURNAL_DATA_FL: "written by way of the journal (chattr +j), which may write old data later",
}
"""Flags of files, as chattr has them (include/uapi/linux/fs.h)."""

ESCAPED = re.compile(r"\\([0-7]{3})")
DELETED = " (deleted)"


class NotRegular(UserError):
    message = "{file} is no regular file"
    hint = "a disk needs no table, and nothing else lies on one"


class SizeUnfit(UserError):
    message = "{file} has {size} bytes, which is nothing, or no multiple of {unit}"
    hint = "`truncate -s %{unit} FILE` rounds its size up; write the new bytes, or they are a hole"


class FileSystemUnfit(UserError):
    message = "{file} lies on {kind}, where blocks can move or aren't on one disk"
    hint = "move it to one of: {fit}"


class FileSystemUnknown(UserError):
    message = "{file} lies on a file system that /proc/self/mountinfo doesn't have (device {device})"
    hint = "move it to one of: {fit}"


class DataJournalled(UserError):
    message = "{file} lies on a file system that is mounted with data=journal, which may write old data later"
    hint = "mount it without that"


class NotOnDisk(UserError):
    message = "device {device}, which {file} lies on, isn't a block device of this host"
    hint = "move it to a file system on a disk"


class FlagsUnfit(UserError):
    message = "{file} is {why}"
    hint = "copy the file to where it is stored as it is"


class OnRealtimeDevice(UserError):
    message = "{file} lies on the realtime device of its file system, which has no place in /proc or /sys"
    hint = "copy it to a directory whose files lie on the data device (`xfs_io -c lsattr`)"


class IsSwap(UserError):
    message = "{file} is a swap file, in use"
    hint = "`sudo swapoff FILE` ends that"


class BacksLoop(UserError):
    message = "{file} is the disk behind /dev/{loop}"
    hint = "`sudo losetup -d /dev/{loop}` ends that; unmount it first"


class FileInUse(UserError):
    message = "{file} is {how} in process {pid} ({name})"
    hint = "end it: what it writes to the file, or has written and kept, is in two places else"


class InUseUnseen(UserError):
    message = "{file} is open somewhere that kdyno can't see"
    hint = "look under sudo; it may also be the kernel's: a loop device, an NFS server, a process of another container"


@dataclass(frozen=True)
class FileIdentity:
    """Which file it is: device (st_dev) and inode. Names don't say that: a file may have several."""

    device: int
    inode: int

    @staticmethod
    def of(path: Path) -> FileIdentity | None:
        """Of what a path leads to; None where it leads nowhere."""
        try:
            status = path.stat()
        except (OSError, ValueError):
            return None
        return FileIdentity(status.st_dev, status.st_ino)

    @property
    def number(self) -> str:
        """The device as MAJOR:MINOR."""
        return f"{os.major(self.device)}:{os.minor(self.device)}"


@dataclass(frozen=True)
class Mount:
    device: str
    point: str
    kind: str
    options: tuple[str, ...]
    """Of the file system, not of the mount alone."""


@dataclass(frozen=True)
class Disk:
    """A block device."""

    sectors: int
    """Of 512 bytes."""
    unit: int
    """Bytes that the device reads or writes at least."""


@dataclass(frozen=True)
class User:
    """A process that has the file open, or mapped."""

    pid: int
    name: str
    how: str


@dataclass(frozen=True)
class Users:
    processes: tuple[User, ...]
    unseen: int
    """Processes that this one may not look into."""


def mounts(root: Path) -> Iterator[Mount]:
    """The lines of /proc/self/mountinfo (proc_pid_mountinfo(5))."""
    for line in (files.text(root / "proc/self/mountinfo") or "").splitlines():
        before, separator, after = line.partition(" - ")
        place, what = before.split(), after.split()
        if separator and len(place) > 4 and len(what) > 2:
            yield Mount(place[2], _unescaped(place[4]), what[0], tuple(what[2].split(",")))


def file_system(root: Path, file: Path, identity: FileIdentity) -> str:
    """The kind of the file system that a file lies on. Raises FileSystemUnfit, FileSystemUnknown, DataJournalled."""
    known = list(mounts(root))
    mount = next((mount for mount in known if mount.device == identity.number), None)
    fit = ", ".join(FIT)
    if mount is None:
        # Files of btrfs and overlay have device numbers of their own; the place says what it is.
        around = [mount for mount in known if file.is_relative_to(mount.point)]
        nearest = max(around, key=lambda mount: len(mount.point), default=None)
        if nearest is None or nearest.kind in FIT:
            raise FileSystemUnknown(file=file, device=identity.number, fit=fit)
        raise FileSystemUnfit(file=file, kind=nearest.kind, fit=fit)
    if mount.kind not in FIT:
        raise FileSystemUnfit(file=file, kind=mount.kind, fit=fit)
    if "data=journal" in mount.options:
        raise DataJournalled(file=file)
    return mount.kind


def disk(root: Path, file: Path, identity: FileIdentity) -> Disk:
    """The block device that a file's file system is on. Raises NotOnDisk."""
    directory = root / "sys/dev/block" / identity.number
    sectors = files.number(directory / "size")
    if sectors is None:
        raise NotOnDisk(device=identity.number, file=file)
    real = directory.resolve()  # a partition has the queue of its disk
    units = (files.number(place / "queue/logical_block_size") for place in (real, real.parent))
    return Disk(sectors, next((unit for unit in units if unit), 512))


def require_size(file: Path, size: int, unit: int) -> None:
    """Raise SizeUnfit unless the size is some units of the disk."""
    if size == 0 or size % unit:
        raise SizeUnfit(file=file, size=size, unit=unit)


def require_plain(file: Path, flags: int | None) -> None:
    """Raise FlagsUnfit if the file's flags say that the disk doesn't have what a reader gets."""
    for flag, why in UNFIT_FLAGS.items():
        if (flags or 0) & flag:
            raise FlagsUnfit(file=file, why=why)


def require_no_swap(root: Path, file: Path, identity: FileIdentity) -> None:
    """Raises IsSwap."""
    for line in (files.text(root / "proc/swaps") or "").splitlines()[1:]:
        area = _unescaped(line.split()[0]) if line.strip() else ""
        if FileIdentity.of(Path(area.removesuffix(DELETED))) == identity:
            raise IsSwap(file=file)


def require_no_loop(root: Path, file: Path, identity: FileIdentity) -> None:
    """Raises BacksLoop."""
    for backing in files.matching(root / "sys/block", "loop*/loop/backing_file"):
        behind = files.text(backing)
        if behind and FileIdentity.of(Path(behind.removesuffix(DELETED))) == identity:
            raise BacksLoop(file=file, loop=backing.parent.parent.name)


def users_of(root: Path, identity: FileIdentity, own: int) -> Users:
    """The processes that have the file open or mapped; `own` is the file descriptor that this one has it open as."""
    users: list[User] = []
    unseen = 0
    for process in files.processes(root):
        pid = int(process.name)
        skip = str(own) if pid == os.getpid() else ""
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


def require_unused(root: Path, file: Path, identity: FileIdentity, own: int, elsewhere: bool | None) -> int:
    """Raise FileInUse and InUseUnseen; else return how many processes couldn't be looked into.

    `elsewhere`: whether the kernel knows of another open file; None where it doesn't say.
    """
    users = users_of(root, identity, own)
    if users.processes:
        user = users.processes[0]
        raise FileInUse(file=file, how=user.how, pid=user.pid, name=user.name)
    if elsewhere:
        raise InUseUnseen(file=file)
    return users.unseen


def _opens(process: Path, identity: FileIdentity, skip: str) -> bool:
    return any(
        name != skip and FileIdentity.of(process / "fd" / name) == identity
        for name in os.listdir(process / "fd")  # noqa: PTH208
    )


def _maps(process: Path, identity: FileIdentity) -> bool:
    """By /proc/PID/maps: addresses, rights, offset, device (hexadecimal), inode, path."""
    wanted = [f"{os.major(identity.device):02x}:{os.minor(identity.device):02x}", str(identity.inode)]
    with (process / "maps").open(encoding="utf-8", errors="replace") as maps:
        return any(line.split(maxsplit=5)[3:5] == wanted for line in maps)


def _unescaped(name: str) -> str:
    """A name in which the kernel wrote white space as `\\040`."""
    return ESCAPED.sub(lambda code: chr(int(code[1], 8)), name)
