"""The sections of a linked 64-bit ELF file, by name, and the bytes in it at an address."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

RELOCATABLE = 1
NOBITS = 8
ALLOC = 2
"""SHF_ALLOC of <elf.h>."""
HEADER_SIZE = 64
MOST_BYTES = 600_000_000
"""Of a vmlinux: the largest that distributions make, with all debug information, has 500 MB."""
MOST_SECTION = 48_000_000
"""Bytes of one section that is read: the counters of four million places have 32 MB."""
LONGEST_LABEL = 64
"""Bytes of a section's name that are looked at."""
SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)


class Damaged(Exception):
    """Why a file can't be read; whoever reads it knows its name."""


@dataclass(frozen=True)
class MappedSection:
    address: int
    size: int
    content: bytes
    """Its bytes in the file; none if it begins as zeros in memory."""


class _Head(NamedTuple):
    """A section's header, as far as it is used: Elf64_Shdr."""

    name: int
    kind: int
    flags: int
    address: int
    start: int
    size: int
    link: int


class MappedElf:
    """The sections of an ELF file. Raises Damaged."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01" or len(data) < 64:
            raise Damaged("it is not a 64-bit ELF file")
        kind, offset, size, number, names = struct.unpack_from("<16xH22xQ10xHHH", data)
        if kind == RELOCATABLE:
            raise Damaged("it is an object file, and isn't linked yet")
        if size < HEADER_SIZE:
            raise Damaged("it has no headers of sections")
        self._data = data
        try:
            self._heads = [_Head(*struct.unpack_from("<IIQQQQI", data, offset + size * part)) for part in range(number)]
            labels = self._content(self._heads[names])
        except (struct.error, OverflowError, IndexError):
            raise Damaged("its headers point outside of it") from None
        self._named: dict[bytes, list[_Head]] = {}
        for head in self._heads:
            label, _, _ = labels[head.name : head.name + LONGEST_LABEL].partition(b"\0")
            self._named.setdefault(label, []).append(head)

    def section(self, name: str) -> MappedSection | None:
        """The section of this name; None if there is none. Raises Damaged if there are several."""
        heads = self._named.get(name.encode(), [])
        if len(heads) > 1:
            raise Damaged(f"it has {len(heads)} sections {name}")
        return MappedSection(heads[0].address, heads[0].size, self._content(heads[0])) if heads else None

    def in_memory(self) -> Iterator[tuple[str, MappedSection]]:
        """Yield name and content of each section that the program has in memory, in the order of the file."""
        for label, heads in self._named.items():
            for head in heads:
                if head.flags & ALLOC:
                    name = label.decode(errors="replace")
                    yield name, MappedSection(head.address, head.size, self._content(head))

    def at(self, address: int, size: int) -> bytes:
        """The bytes at an address; empty if no section has all of them."""
        for head in self._heads:
            start = address - head.address
            if head.address and head.kind != NOBITS and 0 <= start <= head.size - size:
                return self._data[head.start + start : head.start + start + size]
        return b""

    def symbol(self, name: str) -> int | None:
        """The address of the first symbol of this name."""
        tables = self._named.get(b".symtab", [])
        if len(tables) != 1 or tables[0].link >= len(self._heads):
            return None
        place = self._content(self._heads[tables[0].link]).find(b"\0" + name.encode() + b"\0")
        content = self._content(tables[0])
        symbols = np.frombuffer(content[: len(content) // SYMBOL.itemsize * SYMBOL.itemsize], SYMBOL)
        named = symbols["value"][symbols["name"] == place + 1]
        return int(named[0]) if place >= 0 and len(named) else None

    def _content(self, head: _Head) -> bytes:
        if head.kind == NOBITS:
            return b""
        content = self._data[head.start : head.start + min(head.size, MOST_SECTION + 1)]
        if len(content) > MOST_SECTION:
            raise Damaged(f"one of its sections has more than {MOST_SECTION:,} bytes")
        return content
