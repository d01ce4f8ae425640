"""What an ELF file says of itself and of its sources, as kdyno-debuginfo reads it (crates/debuginfo).

A file may be anybody's: the program has limits, so has what it prints, and what can't be read is one message.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kdyno.base.errors import UserError
from kdyno.base.installed import find_program
from kdyno.base.process import TooMuchOutput, attempt, failure

BINARY = "kdyno-debuginfo"
SAYS = f"{BINARY}: error: "
REFUSED = 1
"""Its status where the file can't be read."""
OUT_OF_MEMORY = "memory allocation of"
"""The beginning of its message when it has reached its limit (limits.rs)."""
SECONDS = 300
MOST_BYTES = 512 << 20
"""Of what it tells: the line tables of a small kernel (1,400,000 pieces of code) are 32 MB."""
MOST_BYTES_OF_ELF = 48 << 20
"""Of sections and symbols: a distribution's kernel has 200,000 of them, which are 12 MB."""
PIECE = np.dtype([("start", "<u8"), ("end", "<u8"), ("file", "<u4"), ("line", "<u4"), ("begins", "?")])
"""Code of one line, from its start to before its end; no code where the line begins at code of another. `file` is a
place in Lines.files. `begins`: the line, or a statement of it, begins there (is_stmt), which isn't so of instructions
that the compiler moved."""


class ElfDamaged(UserError):
    message = "{path} is damaged or cut off: {why}"
    hint = "make it anew; for an image, `kdyno build` of its experiment does"


class ElfSection(NamedTuple):
    number: int
    """Its index in the file."""
    name: str
    is_empty: bool
    """The file has none of it: it begins as zeros in memory (SHT_NOBITS)."""
    flags: int
    """SHF_WRITE and so on, as <elf.h> has them."""
    size: int
    """Bytes."""


class ElfSymbol(NamedTuple):
    name: str
    section: int
    """Index in the file; -1 for a common symbol, which gets its place when it is linked."""
    value: int
    """Address, or place in its section."""
    size: int
    """Bytes; symbols without a size are left out."""


class Unit(NamedTuple):
    """A compilation unit that has code."""

    name: str
    """As the compiler was given it."""
    directory: str
    """In which the compiler ran; empty if that isn't known."""
    ranges: tuple[tuple[int, int], ...]
    """Addresses of its code, each range from its start to before its end."""


class CodeFrame(NamedTuple):
    """A function, and a place in it: of the code, or of the call of the function that is inlined there."""

    function: str
    """Empty if it isn't known."""
    path: str
    """Of the source; empty, and line and column 0, if it isn't known."""
    line: int
    column: int


@dataclass(frozen=True, eq=False)
class Lines:
    """All line tables."""

    files: list[tuple[str, str]]
    """The directory in which the compiler ran, empty if the table doesn't say, and the path from there."""
    pieces: list[NDArray[Any]]
    """Of dtype PIECE, in the order of the tables."""


def find_debuginfo() -> Path:
    """Raises ProgramMissing."""
    return find_program(BINARY, "whatever looks into a vmlinux")


def machine_sections_symbols(path: Path) -> tuple[str, list[ElfSection], list[ElfSymbol]]:
    """Of an ELF file of any architecture. Raises ElfDamaged, ProgramMissing, ToolFailed and ToolHangs, as all here."""
    machine, sections, symbols = "", [], []
    for kind, value in _told("elf", path, most=MOST_BYTES_OF_ELF):
        match kind:
            case "machine":
                machine = value
            case "section":
                sections.append(ElfSection(*value))
            case "symbol":
                symbols.append(ElfSymbol(*value))
    return machine, sections, symbols


def units(path: Path) -> list[Unit]:
    """Of a linked file, in the order of its debug information."""
    return [
        Unit(value["name"], value["directory"], tuple((start, end) for start, end in value["ranges"]))
        for _, value in _told("units", path)
    ]


def lines(path: Path) -> Lines:
    """Of a linked file."""
    told = Lines([], [])
    for kind, value in _told("lines", path):
        if kind == "file":
            told.files.append((value[0], value[1]))
            continue
        pieces = np.zeros(len(value["starts"]), PIECE)
        pieces["start"] = np.array(value["starts"], np.uint64) + np.uint64(value["base"])
        pieces["end"] = pieces["start"] + np.array(value["lengths"], np.uint64)
        pieces["file"], pieces["line"], pieces["begins"] = value["files"], value["lines"], value["begins"]
        told.pieces.append(pieces)
    return told


def frames(path: Path, addresses: Iterable[int]) -> list[tuple[CodeFrame, ...]]:
    """For each address of a linked file the functions that it is code of, the innermost first, and at least one.

    The last is called as the table of symbols has it.
    """
    known: list[CodeFrame] = []
    answers = []
    for kind, value in _told("frames", path, stdin="".join(f"{address:x}\n" for address in addresses)):
        if kind == "frame":
            known.append(CodeFrame(*value))
        else:
            answers.append(tuple(known[number] for number in value))
    return answers


def _told(verb: str, path: Path, *, stdin: str | None = None, most: int = MOST_BYTES) -> Iterator[tuple[str, Any]]:
    """What the program tells, in order: the kind of each thing, and the thing."""
    words: list[str | Path] = [find_debuginfo(), verb, path]
    try:
        done = attempt(words, stdin=stdin, timeout=SECONDS, most=most)
    except TooMuchOutput:
        raise ElfDamaged(path=path, why=f"there are more than {most:,} bytes to tell of it") from None
    if done.returncode == -signal.SIGABRT and OUT_OF_MEMORY in done.stderr:
        raise ElfDamaged(path=path, why="it takes more than a gigabyte of memory to read")
    if done.returncode == REFUSED:
        raise ElfDamaged(path=path, why=done.stderr.strip().removeprefix(SAYS))
    if done.returncode != 0:
        raise failure(words, done.returncode, done.stderr)
    for line in done.stdout.split("\n")[:-1]:
        yield from json.loads(line).items()
