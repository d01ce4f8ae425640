"""The loaded segments of a vmlinux: which addresses each of its bytes has. Pure."""

from __future__ import annotations

import struct
from typing import NamedTuple

PT_LOAD = 1


class Segment(NamedTuple):
    """A loaded segment, as its Elf64_Phdr has it."""

    flags: int
    """PF_X and so on."""
    start: int
    """The place of its first byte in the file."""
    address: int
    physical: int
    """The place of its first byte in memory."""
    size: int
    """Bytes in the file."""


def segments(vmlinux: bytes) -> list[Segment]:
    """Return the loaded segments, in the order of their headers. Raise struct.error if a header is cut off."""
    offset, size, number = struct.unpack_from("<32xQ14xHH", vmlinux)
    headers = (struct.unpack_from("<IIQQQQ", vmlinux, at) for at in range(offset, offset + size * number, size or 1))
    return [Segment(*segment) for kind, *segment in headers if kind == PT_LOAD]
