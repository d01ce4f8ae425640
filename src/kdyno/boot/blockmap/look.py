"""Where a file lies on its disk: all checks, in the order in which their reasons are nearest. Changes nothing."""

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
from kdyno.boot.blockmap.extents import file_flags, is_realtime, opened_elsewhere, read_extents
from kdyno.boot.blockmap.model import BlockMap, ExtentRow
from kdyno.boot.blockmap.table import SECTOR, Run, extents_of_file, levels, require_inside, require_unmapped, runs_of

ROOT = Path("/")


@dataclass(frozen=True)
class BlockMapSubject:
    """The file that is looked at, open for reading."""

    path: Path
    file: int
    """Its file descriptor."""
    size: int
    identity: FileIdentity


@contextmanager
def opened(named: str | Path) -> Iterator[BlockMapSubject]:
    """Open a file for reading. Raises NotRegular, OSError, and what `names.absolute` raises."""
    path = Path(absolute(named, Path.cwd()))
    if not stat.S_ISREG(path.stat().st_mode):  # before it is opened: that would rewind a tape
        raise checks.NotRegular(file=path)
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise checks.NotRegular(file=path)
        yield BlockMapSubject(path, file, status.st_size, FileIdentity(status.st_dev, status.st_ino))
    finally:
        os.close(file)


def block_map(named: str | Path, root: Path = ROOT) -> BlockMap:
    """Where a file lies. Raises UserErrors for all that can't be in a table, and OSError."""
    with opened(named) as subject:
        return look(subject, root)


def look(subject: BlockMapSubject, root: Path = ROOT) -> BlockMap:
    """The same of a file that is open; `root`: what /proc and /sys are read from."""
    path, file, identity = subject.path, subject.file, subject.identity
    kind = checks.file_system(root, path, identity)
    disk = checks.disk(root, path, identity)
    checks.require_size(path, subject.size, disk.unit)
    checks.require_plain(path, file_flags(file))
    if kind == "xfs" and is_realtime(file):
        raise checks.OnRealtimeDevice(file=path)
    checks.require_no_swap(root, path, identity)
    checks.require_no_loop(root, path, identity)
    elsewhere = opened_elsewhere(file)
    unseen = checks.require_unused(root, path, identity, file, elsewhere)
    extents = extents_of_file(read_extents(file, subject.size, disk.sectors * SECTOR), subject.size)
    runs = runs_of(extents, identity.number)
    require_inside(runs, disk.sectors)
    runs, mapper_notes = _below(root, runs, identity)
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
        notes=(*_use_notes(unseen, elsewhere), *mapper_notes),
    )


def _use_notes(unseen: int, elsewhere: bool | None) -> Iterator[str]:
    if not unseen:
        return
    processes = f"{unseen} process{'' if unseen == 1 else 'es'} can't be looked into" + (
        " without root" if os.geteuid() != 0 else ""
    )
    if elsewhere is None:
        yield f"{processes}: one of them may have the file open"
    else:
        yield f"{processes}; the kernel says that none has the file open"


def _below(root: Path, runs: tuple[Run, ...], identity: FileIdentity) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """The runs on the disks below device-mapper, and notes. Raises AlreadyMapped."""
    names = mapper.names(root)
    if not names:
        return runs, ()
    if os.geteuid() != 0:
        notes = ["only root may ask device-mapper whether a mapping of this file is there already"]
        if identity.number in names:
            notes.append(f"{identity.number} is a mapping itself; root gets a table of what lies below it")
        return runs, tuple(notes)
    present = mapper.mappers(root)
    deeper = levels(runs, present)
    require_unmapped(deeper, present)
    if len(deeper) == 1:
        return runs, ()
    return deeper[-1], (f"{identity.number} is a mapping itself: the table is of what lies below it",)
