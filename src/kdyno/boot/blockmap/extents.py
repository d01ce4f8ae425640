"""Reading the extents of a file by FS_IOC_FIEMAP, or FIBMAP if the file system lacks that, and the file's flags.

The calls are those of Documentation/filesystems/fiemap.rst, include/uapi/linux/fiemap.h and include/uapi/linux/fs.h.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterator

from kdyno.base.errors import UserError
from kdyno.boot.blockmap.table import LAST, Extent

FS_IOC_FIEMAP = 0xC020660B
FIEMAP_FLAG_SYNC = 0x1
FIEMAP = struct.Struct("=QQIIII")
"""fm_start, fm_length, fm_flags, fm_mapped_extents, fm_extent_count, fm_reserved"""
FIEMAP_EXTENT = struct.Struct("=QQQ16xI12x")
"""fe_logical, fe_physical, fe_length, fe_flags"""
AT_ONCE = 512
"""The number of extents in one call."""

FIBMAP, FIGETBSZ = 1, 2
INT = struct.Struct("=I")
LARGEST_BLOCK = 2**31 - 1
"""The result of FIBMAP is an int; kernels before 5.8 truncate larger numbers."""

FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602
FLAGS = struct.Struct("=I4x")
"""The call is declared with a long, and the kernel reads and writes an int."""
FS_IMMUTABLE_FL = 0x10
FS_IOC_FSGETXATTR = 0x801C581F
FSXATTR = struct.Struct("=I24x")
FS_XFLAG_REALTIME = 0x1

NOT_THERE = {errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}
"""The errors of file systems for a call that they don't support."""


class NoExtents(UserError):
    message = "the file system does not report where its files are stored ({why})"
    hint = "move the file to ext4 or xfs"


class NeedsRight(UserError):
    message = "this file system reports only to root where its files are stored (FIBMAP requires CAP_SYS_RAWIO)"
    hint = "run the same command with sudo"


def read_extents(file: int, size: int, device_bytes: int) -> list[Extent]:
    """Return the extents of an open file of so many bytes, on a device of so many, after flushing its writes to disk.

    Raises NeedsRight and NoExtents.
    """
    try:
        return list(fiemap(file, size))
    except OSError as error:
        if error.errno not in NOT_THERE:
            raise NoExtents(why=error.strerror) from error
    os.fsync(file)
    try:
        return list(fibmap(file, size, device_bytes))
    except PermissionError as error:
        raise NeedsRight() from error
    except OSError as error:
        raise NoExtents(why=error.strerror) from error


def fiemap(file: int, size: int) -> Iterator[Extent]:
    """Yield the extents by FS_IOC_FIEMAP, without holes. Raises OSError."""
    start = 0
    while start < size:
        request = bytearray(FIEMAP.size + AT_ONCE * FIEMAP_EXTENT.size)
        FIEMAP.pack_into(request, 0, start, size - start, FIEMAP_FLAG_SYNC, 0, AT_ONCE, 0)
        fcntl.ioctl(file, FS_IOC_FIEMAP, request)
        count = FIEMAP.unpack_from(request)[3]
        if count == 0:
            return
        for index in range(count):
            extent = Extent(*FIEMAP_EXTENT.unpack_from(request, FIEMAP.size + index * FIEMAP_EXTENT.size))
            yield extent
        if extent.flags & LAST:
            return
        start = extent.logical + extent.length


def fibmap(file: int, size: int, device_bytes: int) -> Iterator[Extent]:
    """Yield the blocks by FIBMAP as extents, without holes. Raises OSError, and NoExtents on too large a disk."""
    block_bytes = _number(file, FIGETBSZ, 0)
    if block_bytes == 0 or device_bytes // block_bytes > LARGEST_BLOCK:
        raise NoExtents(why="the disk has more blocks than FIBMAP can number")
    for index in range(-(-size // block_bytes)):
        block = _number(file, FIBMAP, index)
        if block:
            yield Extent(index * block_bytes, block * block_bytes, block_bytes)


def file_flags(file: int) -> int | None:
    """Return the flags of an open file (chattr); None if the file system has none."""
    flags = _ioctl_if_supported(file, FS_IOC_GETFLAGS, bytearray(FLAGS.size))
    return None if flags is None else int(FLAGS.unpack(flags)[0])


def set_file_flags(file: int, flags: int) -> None:
    """Set the flags of an open file. Raises OSError."""
    fcntl.ioctl(file, FS_IOC_SETFLAGS, bytearray(FLAGS.pack(flags)))


def is_realtime(file: int) -> bool:
    """Return whether the data are on the realtime device of an xfs file system."""
    attributes = _ioctl_if_supported(file, FS_IOC_FSGETXATTR, bytearray(FSXATTR.size))
    return attributes is not None and bool(FSXATTR.unpack(attributes)[0] & FS_XFLAG_REALTIME)


def is_open_elsewhere(file: int) -> bool | None:
    """Return whether the kernel reports another open of this file; None if it doesn't report it.

    A write lease (fcntl(2), F_SETLEASE) is granted only if there is no other. It is released at once; an open in that
    moment waits for it, and its signal is ignored.
    """
    import signal

    try:
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except BlockingIOError:
        return True
    except OSError:  # the file of another user, or a file system without leases
        return None
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def _number(file: int, call: int, value: int) -> int:
    answer = bytearray(INT.pack(value))
    fcntl.ioctl(file, call, answer)
    return int(INT.unpack(answer)[0])


def _ioctl_if_supported(file: int, call: int, answer: bytearray) -> bytearray | None:
    try:
        fcntl.ioctl(file, call, answer)
    except OSError:
        return None
    return answer
