"""What `kdyno blockmap` says, as data."""

from __future__ import annotations

from kdyno.base.frozen import Frozen


class ExtentRow(Frozen):
    """A part of the file that lies in one piece on its file system's device. All in bytes."""

    logical: int
    """Where it begins in the file."""
    physical: int
    """Where it begins on the device."""
    length: int


class BlockMap(Frozen):
    """`kdyno blockmap --json`"""

    file: str
    """Its absolute path, without symbolic links."""
    size: int
    """Bytes."""
    device: str
    """Of the file system: MAJOR:MINOR."""
    file_system: str
    """Its kind: `ext4`."""
    extents: tuple[ExtentRow, ...]
    """As they follow each other in the file; those that lie next to each other are one."""
    table: tuple[str, ...]
    """Lines for dmsetup, in sectors of 512 bytes."""
    mapping: str | None
    """The name of the mapping that was made; null without --activate."""
    undo: tuple[str, ...]
    """Commands that undo what --activate did, in this order."""
    notes: tuple[str, ...]
