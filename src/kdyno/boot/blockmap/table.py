"""Making a device-mapper table from extents, and the reasons for extents that cannot be in one. Pure.

The flags of extents are those of Documentation/filesystems/fiemap.rst, their numbers those of
include/uapi/linux/fiemap.h. The table is that of Documentation/admin-guide/device-mapper/linear.rst.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kdyno.base.errors import UserError

SECTOR = 512
"""The sector of device-mapper in bytes, independent of the sector of the disk."""

LAST, UNKNOWN, DELALLOC, ENCODED = 0x1, 0x2, 0x4, 0x8
DATA_ENCRYPTED, NOT_ALIGNED, DATA_INLINE, DATA_TAIL = 0x80, 0x100, 0x200, 0x400
UNWRITTEN, MERGED, SHARED = 0x800, 0x1000, 0x2000

HARMLESS = LAST | MERGED
COPY = "copy the file: `cp --reflink=never --sparse=never FILE COPY`"
ELSEWHERE = "move it to a file system that stores it unchanged: ext4 or xfs"
REFUSED = {
    DATA_INLINE: ("inline: stored in the metadata of the file system, without a block", ELSEWHERE),
    DATA_TAIL: ("packed: stored in a block with other files", ELSEWHERE),
    DATA_ENCRYPTED: ("encrypted by the file system", ELSEWHERE),
    ENCODED: ("encoded: compressed or encrypted on the disk", ELSEWHERE),
    DELALLOC: ("delayed: not yet assigned to a block", "run `sync`, and try again"),
    UNKNOWN: ("unknown: the file system does not report the place", ELSEWHERE),
    UNWRITTEN: ("unwritten: space without data, which the file system reads as zeros", COPY),
    SHARED: ("shared with another file (a reflink)", COPY),
    NOT_ALIGNED: ("not aligned to blocks", ELSEWHERE),
}
"""The flags of extents that cannot be in a table, the most specific first: some flags imply others."""


class ExtentUnfit(UserError):
    message = "{length} bytes from byte {logical} are {why}"
    hint = "{mend}"


class HasHole(UserError):
    message = "{length} bytes from byte {logical} are a hole, without a block"
    hint = COPY


class ExtentsOverlap(UserError):
    message = "byte {logical} is in two places: the file changed while it was examined"
    hint = "stop the process that writes to it, and try again"


class BeyondDevice(UserError):
    message = "sector {sector} is beyond the end of device {device}, which has {sectors}"
    hint = "the file system may have several devices: move the file to a file system on a single disk"


class AlreadyMapped(UserError):
    message = "the file, or a part of it, is already in the mapping {name}"
    hint = "remove the mapping: `dmsetup remove {name}`"


@dataclass(frozen=True)
class Extent:
    """A part of a file as the kernel reports it, in bytes."""

    logical: int
    physical: int
    length: int
    flags: int = 0


@dataclass(frozen=True)
class Run:
    """Sectors that are contiguous in the file and on the device (MAJOR:MINOR): a line of the table."""

    start: int
    length: int
    device: str
    offset: int

    def line(self) -> str:
        return f"{self.start} {self.length} linear {self.device} {self.offset}"


@dataclass(frozen=True)
class Target:
    """A line of the table of an existing mapping."""

    start: int
    length: int
    kind: str
    words: tuple[str, ...]

    def part(self, run: Run) -> Run | None:
        """Map a run on the mapping by this line; None if the line isn't linear, or they don't overlap."""
        start, end = max(run.offset, self.start), min(run.offset + run.length, self.start + self.length)
        if self.kind != "linear" or len(self.words) != 2 or start >= end:
            return None
        device, offset = self.words
        return Run(run.start + start - run.offset, end - start, device, int(offset) + start - self.start)

    def covers(self, run: Run) -> bool:
        """Return whether this line uses sectors of the run, or may use them if it isn't linear."""
        if run.device not in self.words:
            return False
        if self.kind != "linear" or len(self.words) != 2:
            return True
        offset = int(self.words[1])
        return offset < run.offset + run.length and run.offset < offset + self.length


@dataclass(frozen=True)
class Mapper:
    """An existing mapping."""

    name: str
    targets: tuple[Target, ...]


def refusal_reason(flags: int) -> tuple[str, str] | None:
    """Return why an extent with these flags cannot be in a table, and the action; None if it can."""
    for flag, reason in REFUSED.items():
        if flags & flag:
            return reason
    unknown = flags & ~HARMLESS
    return (f"of a kind that kdyno does not support (flags {unknown:#x})", ELSEWHERE) if unknown else None


def extents_of_file(extents: Iterable[Extent], size: int) -> tuple[Extent, ...]:
    """Return the extents of a file of so many bytes, cut at its end, with adjacent extents joined.

    Raises ExtentUnfit, HasHole and ExtentsOverlap.
    """
    whole: list[Extent] = []
    position = 0
    for extent in sorted(extents, key=lambda extent: extent.logical):
        length = min(extent.length, size - extent.logical)
        if length <= 0:
            continue
        if extent.logical > position:
            raise HasHole(logical=position, length=extent.logical - position)
        if extent.logical < position:
            raise ExtentsOverlap(logical=extent.logical)
        odd = NOT_ALIGNED if (extent.physical | extent.logical | length) % SECTOR else 0
        if reason := refusal_reason(extent.flags | odd):
            raise ExtentUnfit(logical=extent.logical, length=length, why=reason[0], mend=reason[1])
        position += length
        last = whole[-1] if whole else None
        if last is not None and last.physical + last.length == extent.physical:
            whole[-1] = replace(last, length=last.length + length)
        else:
            whole.append(Extent(extent.logical, extent.physical, length))
    if position < size:
        raise HasHole(logical=position, length=size - position)
    return tuple(whole)


def make_runs(extents: Iterable[Extent], device: str) -> tuple[Run, ...]:
    """Return the lines of a table for extents of `extents_of_file` on this device."""
    return tuple(
        Run(extent.logical // SECTOR, extent.length // SECTOR, device, extent.physical // SECTOR) for extent in extents
    )


def require_inside(runs: Iterable[Run], sectors: int) -> None:
    """Raise BeyondDevice if a run ends beyond a device of so many sectors."""
    for run in runs:
        if run.offset + run.length > sectors:
            raise BeyondDevice(sector=run.offset + run.length - 1, device=run.device, sectors=sectors)


def parse_targets(text: str) -> tuple[Target, ...]:
    """Parse the output of `dmsetup table` for one mapping; other lines are ignored."""
    targets = []
    for line in text.splitlines():
        match line.split():
            case [start, length, kind, *words] if start.isdecimal() and length.isdecimal():
                targets.append(Target(int(start), int(length), kind, tuple(words)))
    return tuple(targets)


def levels(runs: Sequence[Run], mappers: Mapping[str, Mapper]) -> list[tuple[Run, ...]]:
    """Return the runs, followed by the runs on each level of devices below, as long as all mappings are linear.

    `mappers` are the existing mappings by device.
    """
    deeper = [tuple(runs)]
    for _ in mappers:  # a mapping is never on itself
        lower_runs = _lower_runs(deeper[-1], mappers)
        if lower_runs is None:
            break
        deeper.append(lower_runs)
    return deeper


def require_unmapped(deeper: Sequence[Sequence[Run]], mappers: Mapping[str, Mapper]) -> None:
    """Raise AlreadyMapped if a mapping above the file uses sectors of it."""
    devices = {run.device for runs in deeper for run in runs}
    for device, mapper in mappers.items():
        if device in devices:
            continue
        if any(target.covers(run) for target in mapper.targets for runs in deeper for run in runs):
            raise AlreadyMapped(name=mapper.name)


def _lower_runs(runs: Sequence[Run], mappers: Mapping[str, Mapper]) -> tuple[Run, ...] | None:
    """Return the runs one level down; None if there is none, or if a mapping isn't linear."""
    if not any(run.device in mappers for run in runs):
        return None
    lower: list[Run] = []
    for run in runs:
        if run.device not in mappers:
            lower.append(run)
            continue
        parts = [part for target in mappers[run.device].targets if (part := target.part(run)) is not None]
        if sum(part.length for part in parts) != run.length:
            return None
        lower += parts
    return _join(lower)


def _join(runs: Iterable[Run]) -> tuple[Run, ...]:
    joined: list[Run] = []
    for run in sorted(runs, key=lambda run: run.start):
        last = joined[-1] if joined else None
        if last is not None and (last.device, last.offset + last.length) == (run.device, run.offset):
            joined[-1] = replace(last, length=last.length + run.length)
        else:
            joined.append(run)
    return tuple(joined)
