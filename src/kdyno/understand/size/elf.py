"""The sections and symbols of an ELF file of any architecture, and the kind of each section."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from kdyno.base import debuginfo
from kdyno.base.debuginfo import ElfSymbol
from kdyno.base.errors import UserError

Kind = Literal["text", "rodata", "data", "bss"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MAGIC = b"\x7fELF"
READ_ONLY = re.compile(r"\.rodata|\.init\.rodata|__ksymtab|__param$|__modver$|\.notes?$")
"""Names of read-only sections. The flags don't show that: the kernel's .rodata is linked as writable."""
WRITABLE, LOADED, EXECUTABLE = 1, 2, 4
"""SHF_WRITE, SHF_ALLOC and SHF_EXECINSTR of <elf.h>."""
COMMON = -1
"""Represents the section of common symbols, which get an address when they are linked."""


class NotElf(UserError):
    message = "{path} is not an ELF file: {why}"
    hint = "name an image (its key or directory), a vmlinux or an object"


@dataclass(frozen=True)
class Section:
    name: str
    kind: Kind | None
    """The kind; None for sections that aren't loaded: debug information, tables of symbols, relocations."""
    size: int
    """The size in bytes."""


@dataclass(frozen=True)
class Elf:
    """The content of one file."""

    machine: str
    """The architecture as in readelf: `Advanced Micro Devices X86-64`."""
    sections: dict[int, Section]
    symbols: tuple[ElfSymbol, ...]


def read_elf(path: Path) -> Elf:
    """Read an ELF file of any architecture. Raises NotElf, and what debuginfo.machine_sections_symbols raises."""
    _require_elf(path)
    machine, sections, symbols = debuginfo.machine_sections_symbols(path)
    kinds = {section.number: Section(section.name, _kind(section), section.size) for section in sections}
    return Elf(machine, kinds, tuple(symbols))


def _require_elf(path: Path) -> None:
    try:
        if not path.is_file():
            raise NotElf(path=path, why="it is not a regular file" if path.exists() else "it does not exist")
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise NotElf(path=path, why="it does not begin with the magic number of ELF")
    except OSError as error:
        raise NotElf(path=path, why=error.strerror) from error


def _kind(section: debuginfo.ElfSection) -> Kind | None:
    if not section.flags & LOADED or section.name.startswith(".discard"):
        return None
    if section.flags & EXECUTABLE:
        return "text"
    if section.is_empty:
        return "bss"
    return "data" if section.flags & WRITABLE and not READ_ONLY.match(section.name) else "rodata"
