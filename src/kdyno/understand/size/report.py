"""Measures the sizes of the files that a user names."""

from __future__ import annotations

from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.names import printable
from kdyno.base.state import State
from kdyno.kernel.image import Image
from kdyno.runs.subject import NamedDirectory, NamedFile, find_subject
from kdyno.understand.size.compare import section_rows, section_sizes, symbol_rows, symbol_sizes, totals
from kdyno.understand.size.elf import read_elf
from kdyno.understand.size.model import SizedFile, SizeReport


class OtherMachine(UserError):
    message = "{before} is for {one}, and {after} for {other}, so that their sizes cannot be compared"
    hint = "name two files of one architecture"


def size_report(before: str, after: str | None, state: State, *, clones_apart: bool = False) -> SizeReport:
    """Measure one file, or compare two; each is an image (its key, its directory), or an ELF file.

    Raises what find_subject raises, NotElf, ElfDamaged and OtherMachine.
    """
    names = [name for name in (before, after) if name is not None]
    paths = [elf_file(name, state) for name in names]
    elves = [read_elf(path) for path in paths]
    files = [
        SizedFile(named=printable(name), path=printable(path), machine=elf.machine)
        for name, path, elf in zip(names, paths, elves, strict=True)
    ]
    first, second = files[0], files[1] if after is not None else None
    if second and first.machine != second.machine:
        raise OtherMachine(before=first.named, one=first.machine, after=second.named, other=second.machine)
    symbols = [symbol_sizes(elf, clones_apart=clones_apart) for elf in elves]
    sections = [section_sizes(elf) for elf in elves]
    rows = symbol_rows(symbols[0], symbols[1] if second else None)
    return SizeReport(
        before=first,
        after=second,
        totals=totals(rows, is_pair=second is not None),
        sections=section_rows(sections[0], sections[1] if second else None),
        symbols=rows,
        notes=tuple(
            f"{file.named} has no symbols: only its sections are known"
            for file, elf in zip(files, elves, strict=True)
            if not elf.symbols
        ),
    )


def elf_file(name: str, state: State) -> Path:
    """Find the named ELF file: for an image or a directory of a kernel build it is the vmlinux."""
    subject = find_subject(name, ("image", "elf", "directory"), state)
    if isinstance(subject, Image):
        return subject.vmlinux
    assert isinstance(subject, NamedFile | NamedDirectory)
    return subject.path / "vmlinux" if isinstance(subject, NamedDirectory) else subject.path
