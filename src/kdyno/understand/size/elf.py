"""Sections and symbols of an ELF file, as readelf lists them.

readelf is there wherever a kernel is built, and reads every architecture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from kdyno.base.elf_listing import run_listing
from kdyno.base.errors import UserError

Kind = Literal["text", "rodata", "data", "bss"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MAGIC = b"\x7fELF"
READ_ONLY = re.compile(r"\.rodata|\.init\.rodata|__ksymtab|__param$|__modver$|\.notes?$")
"""Names of sections that nobody writes to. The flags don't tell: the kernel's .rodata is linked as writable."""

MACHINE = re.compile(r"^  Machine: +(.+)$", re.MULTILINE)
SECTION = re.compile(
    r"^  \[ {0,9}(?P<index>\d+)\] (?P<name>.*?) {1,40}(?P<type>[A-Z][A-Z0-9_]*|[0-9a-f]+: <unknown>) {1,40}"
    r"[0-9a-f]{8,16} (?P<offset>[0-9a-f]{6,16}) (?P<size>[0-9a-f]{6,16}) [0-9a-f]{2,16} {1,9}(?P<flags>[A-Za-z]{0,20})"
    r" {1,9}\d{1,12} {1,9}\d{1,12} {1,9}\d{1,20}$",
    re.MULTILINE,
)
SYMBOL = re.compile(
    r"^ *\d+: (?P<value>[0-9a-f]{8,16}) +(?P<size>\d+|0x[0-9a-f]+) (?P<type>FUNC|OBJECT|NOTYPE|IFUNC|TLS) +\w+ +\w+ +"
    r"(?:\[[^]]*\] +)?(?P<section>\d+|COM) (?P<name>\S.*)$",
    re.MULTILINE,
)
COMMON = -1
"""Stands for the section of common symbols, which get their place when they are linked."""


class NotElf(UserError):
    message = "{path} is no ELF file: {why}"
    hint = "name an image (its key or directory), a vmlinux or an object"


class ElfDamaged(UserError):
    message = "{path} is damaged or cut off: {why}"
    hint = "make it anew; for an image, `kdyno build` of its experiment does"


@dataclass(frozen=True)
class Section:
    name: str
    kind: Kind | None
    """None for what isn't loaded: debug information, tables of symbols, relocations."""
    size: int
    """Bytes."""


@dataclass(frozen=True)
class Symbol:
    name: str
    section: int
    """Index in the file; COMMON for a common symbol."""
    value: int
    """Address, or place in its section."""
    size: int
    """Bytes; symbols without a size are left out."""


@dataclass(frozen=True)
class Elf:
    """What one file holds."""

    machine: str
    """As readelf has it: `Advanced Micro Devices X86-64`."""
    sections: dict[int, Section]
    symbols: tuple[Symbol, ...]


def read_elf(path: Path) -> Elf:
    """Read an ELF file of any architecture. Raises NotElf, ElfDamaged, ElfUnsound, and ToolMissing without binutils."""
    _require_elf(path)
    done = run_listing(["readelf", "--wide", "--file-header", "--section-headers", "--symbols"], path)
    error = next((line for line in done.stderr.splitlines() if "Error: " in line), "")
    if error or done.returncode != 0:
        raise ElfDamaged(path=path, why=error.partition("Error: ")[2] or f"readelf ends with status {done.returncode}")
    elf = parse(done.stdout)
    end = max((int(match["offset"], 16) + int(match["size"], 16) for match in _in_file(done.stdout)), default=0)
    if end > path.stat().st_size:
        raise ElfDamaged(path=path, why=f"its sections reach to byte {end:,}, but it has {path.stat().st_size:,}")
    return elf


def parse(listing: str) -> Elf:
    """What `readelf --wide` lists. Pure."""
    machine = MACHINE.search(listing)
    sections = {
        int(match["index"]): Section(match["name"], _kind(match["name"], match["type"], match["flags"]), size)
        for match in SECTION.finditer(listing)
        if match["type"] != "NULL"
        for size in (int(match["size"], 16),)
    }
    symbols = tuple(
        Symbol(
            match["name"], COMMON if match["section"] == "COM" else int(match["section"]), int(match["value"], 16), size
        )
        for match in SYMBOL.finditer(listing)
        if (size := int(match["size"], 0 if match["size"].startswith("0x") else 10))
    )
    return Elf(machine[1].strip() if machine else "", sections, symbols)


def _require_elf(path: Path) -> None:
    try:
        if not path.is_file():
            raise NotElf(path=path, why="it is no regular file" if path.exists() else "there is none")
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise NotElf(path=path, why="it starts otherwise")
    except OSError as error:
        raise NotElf(path=path, why=error.strerror) from error


def _in_file(listing: str) -> Iterator[re.Match[str]]:
    return (match for match in SECTION.finditer(listing) if match["type"] not in ("NULL", "NOBITS"))


def _kind(name: str, type_: str, flags: str) -> Kind | None:
    if "A" not in flags or name.startswith(".discard"):
        return None
    if "X" in flags:
        return "text"
    if type_ == "NOBITS":
        return "bss"
    return "data" if "W" in flags and not READ_ONLY.match(name) else "rodata"
