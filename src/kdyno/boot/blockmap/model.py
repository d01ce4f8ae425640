"""The result of `kdyno blockmap`, as data."""

from __future__ import annotations

from kdyno.base.frozen import Frozen


class ExtentRow(Frozen):
    """A contiguous part of the file on the device of its file system, in bytes."""

    logical: int
    """The offset in the file."""
    physical: int
    """The offset on the device."""
    length: int


class BlockMap(Frozen):
    """The output of `kdyno blockmap --json`."""

    file: str
    """The absolute path of the file, without symbolic links."""
    size: int
    """Bytes."""
    device: str
    """The device of the file system: MAJOR:MINOR."""
    file_system: str
    """The kind of the file system, such as `ext4`."""
    extents: tuple[ExtentRow, ...]
    """The extents in the order of the file; adjacent extents are joined."""
    table: tuple[str, ...]
    """The lines for dmsetup, in sectors of 512 bytes."""
    mapping: str | None
    """The name of the created mapping; null without --activate."""
    undo: tuple[str, ...]
    """The commands that undo --activate, in this order."""
    notes: tuple[str, ...]
