"""Writing a file whole or not at all, and reading files of unknown content."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO

from kdyno.base.errors import KdynoError, UserError
from kdyno.base.state import translate_disk_full, unwritable_reason

REFUSALS = (
    errno.ENOENT,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENAMETOOLONG,
)
"""Errors of the path, not of the disk: another path would work."""
STREAMS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
"""Directories whose names stand for devices and open files, as /dev/stdout does."""


class NotWritable(UserError):
    message = "can't write {path}: {why}"
    hint = "name a file in an existing directory that you may write to"


class DirectoryNotWritable(UserError):
    message = "can't write files into {path}: {why}"
    hint = "name a directory that you may write to; a new one is made in an existing one"


def write_whole(
    path: Path,
    content: str | bytes,
    *,
    mode: int | None = None,
    durable: bool = True,
    refused: type[KdynoError] = NotWritable,
) -> None:
    """Write a file so that a reader finds either the old one or the whole new one.

    Without `mode` the file gets the mode of any new file. If it is `durable`, the file and its name are on the disk
    when this returns; otherwise it may be empty or gone after a power cut. Raise DiskFull, and `refused` with `path`
    and `why` if the path can't be written to.
    """
    with replacement(path, mode, durable, refused) as file:
        file.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)


def copy_whole(
    source: Path,
    path: Path,
    *,
    mode: int | None = None,
    durable: bool = True,
    refused: type[KdynoError] = NotWritable,
) -> None:
    """Copy the content of a file, as `write_whole` writes it. Raise OSError if the source can't be read."""
    with source.open("rb") as original, replacement(path, mode, durable, refused) as file:
        shutil.copyfileobj(original, file)


def remove_unfinished(path: Path) -> None:
    """Remove the temporary files that killed writes of this file left next to it. Nobody may be writing it meanwhile.

    Files that this user may not remove stay.
    """
    with suppress(OSError):
        for leftover in list(path.parent.iterdir()):
            if leftover.name.startswith(_incoming_prefix(path)):
                leftover.unlink()


def open_regular(path: Path, *, follow_link: bool = True) -> BufferedReader:
    """Open a regular file that somebody named, to read it. Never wait, as a pipe would let open() do.

    Raise OSError with a complete `strerror`: also for a directory, pipe or device, and for a link that must not be
    followed.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags if follow_link else flags | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow_link:
            raise OSError(errno.ELOOP, "it is a symbolic link", str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_whole(path: Path, most_bytes: int, *, follow_link: bool = True) -> bytes:
    """Return the content of a regular file that somebody named. It never waits, as a pipe would, and never exhausts
    memory.

    Raise OSError with a complete `strerror`: also for a directory, pipe or device, for a file of more bytes, and for a
    link that must not be followed.
    """
    with open_regular(path, follow_link=follow_link) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(min(size, most_bytes) + 1)  # takes that much memory before it reads
        if size < len(content) <= most_bytes:  # of /proc, or it grows
            content += file.read(most_bytes + 1 - len(content))
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes:,} bytes", str(path))
    return content


def require_writable(path: Path) -> None:
    """Raise NotWritable if a file can't be written: call this before minutes of work for that file."""
    directory = path.absolute().parent
    if path.is_dir():
        raise NotWritable(path=path, why="it is a directory")
    if not directory.is_dir():
        raise NotWritable(path=path, why="its directory does not exist")
    if not _is_stream(path) and (why := unwritable_reason(path) or unwritable_reason(directory)):
        raise NotWritable(path=path, why=why)


def require_directory(path: Path) -> None:
    """Raise DirectoryNotWritable if files can't be written into a directory, which may be a new one in an existing
    one: call this before minutes of work for these files.
    """
    place = path if os.path.lexists(path) else path.absolute().parent
    if not place.is_dir():
        raise DirectoryNotWritable(path=path, why="it is not a directory, or not in one")
    if why := unwritable_reason(place):
        raise DirectoryNotWritable(path=path, why=why)


def make_directory(path: Path) -> None:
    """Make a directory unless it is there. Raise DirectoryNotWritable."""
    with translate_disk_full(path), _translate_refusals(DirectoryNotWritable, path):
        path.mkdir(exist_ok=True)


def sync(path: Path) -> None:
    """Flush a file, or the names in a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def replacement(
    path: Path, mode: int | None = None, durable: bool = True, refused: type[KdynoError] = NotWritable
) -> Iterator[IO[bytes]]:
    """Yield a new file that takes the name `path` when the body is done; it is removed if the body fails. See
    write_whole.
    """
    with translate_disk_full(path), _translate_refusals(refused, path):
        if _is_stream(path):
            with path.open("wb") as stream:
                yield stream
            return
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=_incoming_prefix(path))
        incoming = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                os.fchmod(descriptor, _new_file_mode() if mode is None else mode)
                file.flush()
                if durable:
                    os.fsync(descriptor)
            incoming.replace(path)
        finally:
            incoming.unlink(missing_ok=True)
        if durable:
            with suppress(PermissionError):  # a directory may be write-only
                sync(path.parent)


def _incoming_prefix(path: Path) -> str:
    """Return the prefix of temporary files that are to take the name `path`."""
    return f".{path.name[:40]}-"


@contextmanager
def _translate_refusals(refused: type[KdynoError], path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in REFUSALS:
            raise refused(path=path, why=error.strerror) from error
        raise


def _is_stream(path: Path) -> bool:
    """Return whether a path leads to a device or a pipe, which is written to and never replaced."""
    return path.is_fifo() or path.is_char_device() or path.absolute().parent in STREAMS


def _new_file_mode() -> int:
    """Return the mode that new files get here; temporary files begin with another one."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
