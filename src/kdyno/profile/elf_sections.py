"""The sections of a linked 64-bit ELF file, by name, and the bytes in it at an address."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

RELOCATABLE = 1
NOBITS = 8
SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)


class Damaged(Exception):
    """Why a file can't be read; whoever reads it knows its name."""


@dataclass(frozen=True)
class Section:
    address: int
    size: int
    content: bytes
    """Its bytes in the file; none if it begins as zeros in memory."""
    link: int
    """The index of a section that this one goes with: of a table of symbols, its names."""


class Elf:
    """The sections of an ELF file. Raises Damaged."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01" or len(data) < 64:
            raise Damaged("it is not a 64-bit ELF file")
        kind, offset, size, number, names = struct.unpack_from("<16xH22xQ10xHHH", data)
        if kind == RELOCATABLE:
            raise Damaged("it is an object file, and isn't linked yet")
        try:
            heads = [struct.unpack_from("<IIQQQQI", data, offset + size * index) for index in range(number)]
            labels = data[heads[names][4] :][: heads[names][5]]
        except (struct.error, OverflowError, IndexError):
            raise Damaged("its headers point outside of it") from None
        self._sections = [
            Section(address, length, b"" if kind == NOBITS else data[start : start + length], link)
            for _, kind, _, address, start, length, link in heads
        ]
        self._index: dict[bytes, list[int]] = {}
        for index, head in enumerate(heads):
            self._index.setdefault(labels[head[0] : labels.find(b"\0", head[0])], []).append(index)

    def section(self, name: str) -> Section | None:
        """The section of this name; None if there is none. Raises Damaged if there are several."""
        indices = self._index.get(name.encode(), [])
        if len(indices) > 1:
            raise Damaged(f"it has {len(indices)} sections {name}")
        return self._sections[indices[0]] if indices else None

    def at(self, address: int, size: int) -> bytes:
        """The bytes at an address; empty if no section has all of them."""
        for section in self._sections:
            start = address - section.address
            if section.address and 0 <= start <= len(section.content) - size:
                return section.content[start : start + size]
        return b""

    def symbol(self, name: str) -> int | None:
        """The address of the first symbol of this name."""
        table = self.section(".symtab")
        if table is None or table.link >= len(self._sections):
            return None
        place = self._sections[table.link].content.find(b"\0" + name.encode() + b"\0")
        symbols = np.frombuffer(table.content[: len(table.content) // SYMBOL.itemsize * SYMBOL.itemsize], SYMBOL)
        named = symbols["value"][symbols["name"] == place + 1] if place >= 0 else symbols["value"][:0]
        return int(named[0]) if len(named) else None
