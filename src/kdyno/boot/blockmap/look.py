"""Finding the place of a file on its disk, with all checks, the most specific reasons first. Changes nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.names import absolute
from kdyno.boot.blockmap import checks, mapper
from kdyno.boot.blockmap.checks import FileIdentity
from kdyno.boot.blockmap.extents import file_flags, is_open_elsewhere, is_realtime, read_extents
from kdyno.boot.blockmap.model import BlockMap, ExtentRow
from kdyno.boot.blockmap.table import SECTOR, Run, extents_of_file, levels, make_runs, require_inside, require_unmapped

ROOT = Path("/")


@dataclass(frozen=True)
class BlockMapSubject:
    """The examined file, open for reading."""

    path: Path
    file: int
    """Its file descriptor."""
    size: int
    identity: FileIdentity


@contextmanager
def open_subject(file_name: str | Path) -> Iterator[BlockMapSubject]:
    """Open a file for reading. Raises NotRegular, OSError, and what `names.absolute` raises."""
    path = Path(absolute(file_name, Path.cwd()))
    if not stat.S_ISREG(path.stat().st_mode):  # before opening it, which would rewind a tape
        raise checks.NotRegular(file=path)
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise checks.NotRegular(file=path)
        yield BlockMapSubject(path, file, status.st_size, FileIdentity(status.st_dev, status.st_ino))
    finally:
        os.close(file)


def block_map(file_name: str | Path, root: Path = ROOT) -> BlockMap:
    """Return the block map of a file. Raises UserErrors for everything that a table cannot contain, and OSError."""
    with open_subject(file_name) as subject:
        return look(subject, root)


def look(subject: BlockMapSubject, root: Path = ROOT) -> BlockMap:
    """Return the block map of an open file; `root` is the root of /proc and /sys."""
    path, file, identity = subject.path, subject.file, subject.identity
    kind = checks.file_system(root, path, identity)
    disk = checks.disk(root, path, identity)
    checks.require_size(path, subject.size, disk.unit)
    checks.require_plain(path, file_flags(file))
    if kind == "xfs" and is_realtime(file):
        raise checks.OnRealtimeDevice(file=path)
    checks.require_no_swap(root, path, identity)
    checks.require_no_loop(root, path, identity)
    is_elsewhere = is_open_elsewhere(file)
    unseen = checks.require_unused(root, path, identity, file, is_elsewhere)
    extents = extents_of_file(read_extents(file, subject.size, disk.sectors * SECTOR), subject.size)
    runs = make_runs(extents, identity.number)
    require_inside(runs, disk.sectors)
    runs, mapper_notes = _lower_runs(root, runs, identity)
    return BlockMap(
        file=str(path),
        size=subject.size,
        device=identity.number,
        file_system=kind,
        extents=tuple(
            ExtentRow(logical=extent.logical, physical=extent.physical, length=extent.length) for extent in extents
        ),
        table=tuple(run.line() for run in runs),
        mapping=None,
        undo=(),
        notes=(*_use_notes(unseen, is_elsewhere), *mapper_notes),
    )


def _use_notes(unseen: int, is_elsewhere: bool | None) -> Iterator[str]:
    if not unseen:
        return
    processes = f"{unseen} process{'' if unseen == 1 else 'es'} cannot be examined" + (
        " without root" if os.geteuid() != 0 else ""
    )
    if is_elsewhere is None:
        yield f"{processes}: one of them may have the file open"
    else:
        yield f"{processes}; the kernel reports that none has the file open"


def _lower_runs(root: Path, runs: tuple[Run, ...], identity: FileIdentity) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """Return the runs on the disks below device-mapper, and notes. Raises AlreadyMapped."""
    names = mapper.names(root)
    if not names:
        return runs, ()
    if os.geteuid() != 0:
        notes = ["only root can check whether a mapping of this file exists already"]
        if identity.number in names:
            notes.append(f"{identity.number} is a mapping itself; as root, kdyno prints a table of the disk below it")
        return runs, tuple(notes)
    present = mapper.mappers(root)
    deeper = levels(runs, present)
    require_unmapped(deeper, present)
    if len(deeper) == 1:
        return runs, ()
    return deeper[-1], (f"{identity.number} is a mapping itself: the table is of the disk below it",)
